/** Socket: a WebSocket that reconnects by itself, with backoff, and resumes after the last received event. */
import type { Frame } from "@/live/log";

export type ConnectionState = "connecting" | "live" | "lost" | "signed-out";

export interface SocketLike {
  onopen: ((event: unknown) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
  send(text: string): void;
  close(): void;
}

interface SocketOptions {
  open: () => SocketLike;
  /** The number of the last received event, by team. It is read at each connect, so that the server resumes there. */
  cursors: () => Record<string, number>;
  onFrame: (frame: Frame) => void;
  onStateChange: (state: ConnectionState, retryAt: number | null) => void;
  /** Whether the session is still valid. Browsers do not report the HTTP status of a refused WebSocket, so this is asked when one closes before its hello. */
  isSignedIn: () => Promise<boolean>;
  random?: () => number;
}

const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;
/** The server pings every 15 seconds: after this time without a frame the connection is dead. */
const SILENCE_LIMIT_MS = 40_000;
/** The server's close code for a revoked or expired session. */
const CLOSE_UNAUTHORIZED = 4401;

/** Return the delay before the next attempt: doubling up to five seconds, with 30 % jitter, so that many pages do not reconnect at once. */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  return Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** attempts) * (0.7 + 0.6 * random());
}

/** One WebSocket at a time, with reconnects. The options hold all side effects, so that unit tests can replace them. */
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

  /** Connect now instead of after the delay: the browser is online again, or the person returned to the page. */
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
      // A late frame of a socket that was given up must not reach the store: the new socket's frames would be out of order.
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

  /** Give up a connection without frames. A half-open TCP connection is not closed by the browser for minutes. */
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
