/** Socket: one line to the server that comes back by itself, sooner when there is reason to hope. */
import type { Frame } from "@/live/log";

export type Phase = "connecting" | "live" | "lost" | "signed-out";

export interface SocketLike {
  onopen: ((event: unknown) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface LineOptions {
  open: () => SocketLike;
  /** How far the client has got in each team. */
  cursors: () => Record<string, number>;
  onFrame: (frame: Frame) => void;
  onPhase: (phase: Phase, retryAt: number | null) => void;
  /** Whether the server still knows us; asked when a line ended before it began. */
  isSignedIn: () => Promise<boolean>;
  random?: () => number;
}

const FIRST_MS = 500;
const MOST_MS = 5_000;
const QUIET_MS = 40_000;
const UNAUTHORIZED = 4401;

/** How long to wait before the next try: doubling, a third to either side, at most five seconds. */
export function backoff(tries: number, random: () => number = Math.random): number {
  return Math.min(MOST_MS, FIRST_MS * 2 ** tries) * (0.7 + 0.6 * random());
}

export class Line {
  private socket: SocketLike | null = null;
  private tries = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private quiet: ReturnType<typeof setTimeout> | undefined;
  private ended = false;

  constructor(private readonly options: LineOptions) {}

  start(): void {
    this.ended = false;
    this.connect();
  }

  stop(): void {
    this.ended = true;
    clearTimeout(this.retry);
    this.drop();
  }

  /** Try now instead of later: the browser is online again, or the person is looking. */
  wake(): void {
    if (this.ended || this.socket !== null) return;
    this.tries = 0;
    this.connect();
  }

  private connect(): void {
    clearTimeout(this.retry);
    if (this.tries === 0) this.options.onPhase("connecting", null);
    const socket = this.options.open();
    this.socket = socket;
    let greeted = false;
    this.listen();
    socket.onopen = () => socket.send(JSON.stringify({ op: "subscribe", cursors: this.options.cursors() }));
    socket.onmessage = (event) => {
      if (this.socket !== socket) return;
      this.listen();
      const frame = JSON.parse(String(event.data)) as Frame;
      if (frame.op === "hello") {
        greeted = true;
        this.tries = 0;
        this.options.onPhase("live", null);
      }
      this.options.onFrame(frame);
    };
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.drop();
      void this.lost(event.code, greeted);
    };
  }

  /** A line that says nothing for longer than its pings are apart is dead, whatever it looks like. */
  private listen(): void {
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      this.drop();
      void this.lost(0, true);
    }, QUIET_MS);
  }

  private drop(): void {
    clearTimeout(this.quiet);
    const socket = this.socket;
    this.socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  private async lost(code: number, greeted: boolean): Promise<void> {
    if (code === UNAUTHORIZED || (!greeted && !(await this.options.isSignedIn()))) {
      this.options.onPhase("signed-out", null);
      return;
    }
    if (this.ended || this.socket !== null) return;
    const wait = backoff(this.tries++, this.options.random);
    this.options.onPhase("lost", Date.now() + wait);
    this.retry = setTimeout(() => this.connect(), wait);
  }
}
