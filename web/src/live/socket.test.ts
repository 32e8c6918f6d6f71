import { beforeEach, describe, expect, it, vi } from "vitest";
import { backoffMs, ReconnectingSocket, type ConnectionState, type SocketLike } from "@/live/socket";

class FakeSocket implements SocketLike {
  onopen: ((event: unknown) => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  sent: string[] = [];
  isClosed = false;
  send(text: string) {
    this.sent.push(text);
  }
  close() {
    this.isClosed = true;
  }
  sendHello() {
    this.onopen?.({});
    this.onmessage?.({ data: JSON.stringify({ op: "hello", epoch: "e", build: "1", heads: {} }) });
  }
}

function openConnection(isSignedIn = true) {
  const sockets: FakeSocket[] = [];
  const states: ConnectionState[] = [];
  const connection = new ReconnectingSocket({
    open: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket;
    },
    cursors: () => ({ t: 41 }),
    onFrame: () => {},
    onStateChange: (state) => states.push(state),
    isSignedIn: async () => isSignedIn,
    random: () => 0.5,
  });
  connection.start();
  return { connection, sockets, states };
}

beforeEach(() => void vi.useFakeTimers());

describe("the reconnecting socket", () => {
  it("sends its cursors", () => {
    const { sockets, states } = openConnection();
    sockets[0]!.sendHello();
    expect(JSON.parse(sockets[0]!.sent[0]!)).toEqual({ op: "subscribe", cursors: { t: 41 } });
    expect(states).toEqual(["connecting", "live"]);
  });

  it("doubles the delay up to five seconds, with jitter", () => {
    expect([0, 1, 2, 3, 4, 9].map((attempts) => backoffMs(attempts, () => 0.5))).toEqual([500, 1000, 2000, 4000, 5000, 5000]);
    expect(backoffMs(9, () => 1)).toBeCloseTo(6500);
    expect(backoffMs(0, () => 0)).toBeCloseTo(350);
  });

  it("reconnects by itself", async () => {
    const { sockets, states } = openConnection();
    sockets[0]!.sendHello();
    sockets[0]!.onclose?.({ code: 1006 });
    await vi.advanceTimersByTimeAsync(499);
    expect(sockets).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2);
    sockets[1]!.sendHello();
    expect(states.at(-1)).toBe("live");
  });

  it("reconnects at once when asked, but opens no second socket", async () => {
    const { connection, sockets } = openConnection();
    sockets[0]!.sendHello();
    connection.reconnectNow();
    expect(sockets).toHaveLength(1);
    sockets[0]!.onclose?.({ code: 1006 });
    await vi.advanceTimersByTimeAsync(1);
    connection.reconnectNow();
    expect(sockets).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sockets).toHaveLength(2);
  });

  it("gives up a silent connection", async () => {
    const { sockets } = openConnection();
    sockets[0]!.sendHello();
    await vi.advanceTimersByTimeAsync(39_000);
    sockets[0]!.onmessage?.({ data: '{"op":"ping"}' });
    await vi.advanceTimersByTimeAsync(39_000);
    expect(sockets[0]!.isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(sockets[0]!.isClosed).toBe(true);
    expect(sockets).toHaveLength(2);
  });

  it("does not retry without a valid session", async () => {
    const { sockets, states } = openConnection(false);
    sockets[0]!.onclose?.({ code: 1006 });
    await vi.advanceTimersByTimeAsync(60_000);
    expect([sockets.length, states.at(-1)]).toEqual([1, "signed-out"]);
  });

  it("stops when its session is revoked", async () => {
    const { sockets, states } = openConnection();
    sockets[0]!.sendHello();
    sockets[0]!.onclose?.({ code: 4401 });
    await vi.advanceTimersByTimeAsync(60_000);
    expect([sockets.length, states.at(-1)]).toEqual([1, "signed-out"]);
  });
});
