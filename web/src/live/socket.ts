/** Socket: one line to the server that comes back by itself, sooner when there is reason to hope. */
import type { Frame } from "@/live/log";

export type ConnectionState = "connecting" | "live" | "lost" | "signed-out";

export interface SocketLike {
  onopen: ((event: unknown) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface SocketOptions {
  open: () => SocketLike;
  /** How far the client has got in each team. */
  cursors: () => Record<string, number>;
  onFrame: (frame: Frame) => void;
  onStateChange: (state: ConnectionState, retryAt: number | null) => void;
  /** Whether the server still knows us; asked when a line ended before it began. */
  isSignedIn: () => Promise<boolean>;
  random?: () => number;
}

const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;
const SILENCE_LIMIT_MS = 40_000;
const CLOSE_UNAUTHORIZED = 4401;

/** How long to wait before the next try: doubling, a third to either side, at most five seconds. */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  return Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** attempts) * (0.7 + 0.6 * random());
}

export class ReconnectingSocket {
  private socket: SocketLike | null = null;
  private attempts = 0;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;

  constructor(private readonly options: SocketOptions) {}

  start(): void {
    this.isStopped = false;
    this.connect();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.retryTimer);
    this.closeSocket();
  }

  /** Try now instead of later: the browser is online again, or the person is looking. */
  reconnectNow(): void {
    if (this.isStopped || this.socket !== null) return;
    this.attempts = 0;
    this.connect();
  }

  private connect(): void {
    clearTimeout(this.retryTimer);
    if (this.attempts === 0) this.options.onStateChange("connecting", null);
    const socket = this.options.open();
    this.socket = socket;
    let hasHello = false;
    this.restartSilenceTimer();
    socket.onopen = () => socket.send(JSON.stringify({ op: "subscribe", cursors: this.options.cursors() }));
    socket.onmessage = (event) => {
      if (this.socket !== socket) return;
      this.restartSilenceTimer();
      const frame = JSON.parse(String(event.data)) as Frame;
      if (frame.op === "hello") {
        hasHello = true;
        this.attempts = 0;
        this.options.onStateChange("live", null);
      }
      this.options.onFrame(frame);
    };
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.closeSocket();
      void this.scheduleRetry(event.code, hasHello);
    };
  }

  /** A line that says nothing for longer than its pings are apart is dead, whatever it looks like. */
  private restartSilenceTimer(): void {
    clearTimeout(this.silenceTimer);
    this.silenceTimer = setTimeout(() => {
      this.closeSocket();
      void this.scheduleRetry(0, true);
    }, SILENCE_LIMIT_MS);
  }

  private closeSocket(): void {
    clearTimeout(this.silenceTimer);
    const socket = this.socket;
    this.socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  private async scheduleRetry(code: number, hasHello: boolean): Promise<void> {
    if (code === CLOSE_UNAUTHORIZED || (!hasHello && !(await this.options.isSignedIn()))) {
      this.options.onStateChange("signed-out", null);
      return;
    }
    if (this.isStopped || this.socket !== null) return;
    const delayMs = backoffMs(this.attempts++, this.options.random);
    this.options.onStateChange("lost", Date.now() + delayMs);
    this.retryTimer = setTimeout(() => this.connect(), delayMs);
  }
}
