/** Live: the page's WebSocket connection, its store, and the messages that the person sends. */
import { useStore } from "zustand";
import { inOrder } from "@/lib/lanes";
import { ApiError, api, onSignedOut, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { fetchApi, onSignedInElsewhere, subprotocols } from "@/api/session";
import { atSecondFrame, type Draft, LiveStore, type LiveState, type UnsentMessage } from "@/live/store";
import { cacheChunks, loadChunk, setServerAway } from "@/live/chunks";
import { forgetTakenBack, forgetUnsent, keepPutBack, keepTakenBack, keepUnsent, keptUnsent } from "@/live/outbox";
import { ReconnectingSocket, type SocketLike } from "@/live/socket";
import type { Event } from "@/live/log";

const listeners = new Set<(events: Event[]) => void>();
/** Call the listener with every batch of new events. Return a function that removes it. */
export function onNewEvents(listener: (events: Event[]) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export const live = new LiveStore({
  fetchEvents: (team, after, limit) =>
    unwrap(api.GET("/api/teams/{team}/events", { params: { path: { team }, query: { after, limit } } })) as Promise<Event[]>,
  onEvents: (events) => {
    void loadChunk(() => import("@/live/invalidation")).then(({ invalidateFor }) => invalidateFor(events));
    for (const listener of listeners) listener(events);
  },
  onReload: () => void queryClient.invalidateQueries(),
  scheduleFlush: atSecondFrame,
});

async function isSignedIn(): Promise<boolean> {
  try {
    return (await fetchApi("/api/teams?limit=1")).status !== 401;
  } catch {
    // The server cannot be reached: that says nothing about the session, so keep retrying.
    return true;
  }
}

/** Whether the page shows what the server has: then it is kept for a reload while the server is away. Before, such a page shows what was kept. */
let isUpToDate = false;
let areSeenShown = false;

/** Loaded while the server is there: it is needed when the server is away. */
let seen: typeof import("@/live/seen") | null = null;
const loadSeen = async () => (seen ??= await import("@/live/seen").catch(() => null));

async function rememberSeen(): Promise<void> {
  if (isUpToDate) return await seen?.keepSeen(queryClient);
  if (!areSeenShown) areSeenShown = (await (await loadSeen())?.showSeen(queryClient)) ?? false;
}

export const socket = new ReconnectingSocket({
  open: () => new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/events`, subprotocols()) as unknown as SocketLike,
  cursors: () => live.store.getState().cursors,
  onFrame: (frame) => {
    live.receive(frame);
    if (frame.op === "hello") {
      resendQueued();
      if (!isUpToDate) void loadChunk(() => import("@/live/invalidation")).then(({ catchUp }) => catchUp(frame.heads));
      isUpToDate = true;
      void loadSeen();
      if (areSeenShown) void queryClient.invalidateQueries();
      areSeenShown = false;
    }
  },
  onStateChange: (state, retryAt) => {
    live.setConnection(state, retryAt);
    // "connecting" is also the state of the first connection, when the server is not known to be away.
    if (state !== "connecting") setServerAway(state === "lost");
    if (state === "lost") void rememberSeen();
  },
  isSignedIn,
});

/** How long after the start the files of all screens are put into the cache: the first screen comes first. */
const CACHE_DELAY_MS = 4_000;

export function startLive(): void {
  onSignedOut(() => {
    socket.stop();
    live.setConnection("signed-out", null);
    isUpToDate = false;
    void loadSeen().then((loaded) => loaded?.forgetSeen());
  });
  // Its sign-in has replaced the cookie of this tab too, some time before the key.
  onSignedInElsewhere(() => live.store.getState().connection === "signed-out" && location.reload());
  // A sleeping laptop misses its timers: try again as soon as the network or the person is back.
  addEventListener("online", () => socket.reconnectNow());
  document.addEventListener("visibilitychange", () => document.hidden || socket.reconnectNow());
  addEventListener("pagehide", () => isUpToDate && void rememberSeen());
  socket.start();
  restored = restoreUnsent();
  setTimeout(() => void cacheChunks(), CACHE_DELAY_MS);
}

export function useLive<T>(select: (state: LiveState) => T): T {
  return useStore(live.store, select);
}

export type NewMessage = Pick<UnsentMessage, "clientId" | "agentId" | "text" | "mode" | "attachments" | "mentions" | "edits" | "stopWork">;

/**
 * Send a message. When this returns, the outbox or the server has it, and the caller may forget its own copy.
 *
 * The outbox sends it again with the same client id until the server has it, so that it arrives once. If the browser does
 * not store it, the message is sent once, and this throws if it fails.
 */
export async function sendMessage(message: NewMessage): Promise<void> {
  const unsent: UnsentMessage = { ...message, at: new Date().toISOString(), state: "sending", reason: "" };
  if (await keepUnsent(unsent)) {
    live.putUnsent(unsent);
    return void postInOrder(unsent, postUnsent);
  }
  try {
    await postInOrder(unsent, post);
  } finally {
    // A slow browser stores it later, and then forgets it: otherwise the next page would send what is still in the text field.
    void forgetUnsent(unsent.clientId);
  }
}

export function resendMessage(unsent: UnsentMessage): void {
  live.updateUnsent(unsent.clientId, { state: "sending", reason: "" });
  void postInOrder(unsent, postUnsent);
}

/** Whether a message was taken back: it is not if it is on its way to the server. If the browser did not store that, the next page may send it. */
export type TakeBack = "taken back" | "not stored" | "on its way";

/** Take a message out of its conversation and put it elsewhere. From then on nobody sends it. */
export async function takeBackUnsent({ clientId }: UnsentMessage, putElsewhere: () => Promise<void>): Promise<TakeBack> {
  const unsent = unsentOf(clientId);
  if (unsent === undefined || unsent.state === "sending") return "on its way";
  live.removeUnsent(clientId);
  takenBack.set(clientId, "here");
  const tellOtherTabs = () => otherTabs?.postMessage(clientId);
  // First as one that no page sends by itself: after a crash, its words may be in both places, and are sent from neither.
  const isStored = await keepUnsent({ ...unsent, state: "refused", reason: "You took it back." });
  tellOtherTabs();
  await putElsewhere();
  // Again: a tab that was opened meanwhile shows it.
  void keepTakenBack(unsent).then(tellOtherTabs);
  return isStored ? "taken back" : "not stored";
}

/** Forget a message. */
export const discardUnsent = (unsent: UnsentMessage): Promise<TakeBack> => takeBackUnsent(unsent, async () => {});

/** Undo `discardUnsent`. */
export async function putBackUnsent(unsent: UnsentMessage): Promise<void> {
  takenBack.delete(unsent.clientId);
  await keepPutBack(unsent);
  live.putUnsent(unsent);
  if (unsent.state === "queued") resendMessage(unsent);
}

/** Return whether one of the messages was taken back: the server had it already, and its response was lost. True once for each. */
export async function hasArrivedAfterAll(messages: readonly { client_id: string | null }[]): Promise<boolean> {
  await restored;
  const arrived = messages.flatMap(({ client_id: id }) => (id !== null && takenBack.get(id) === "here" ? [id] : []));
  for (const id of arrived) takenBack.delete(id);
  return (await Promise.all(arrived.map(forgetTakenBack))).some(Boolean);
}

const unsentOf = (clientId: string): UnsentMessage | undefined => live.store.getState().unsent.find((one) => one.clientId === clientId);

/** The messages that were taken back, by client id. What was taken back here, or by an earlier page, is reported here if it arrives after all. */
const takenBack = new Map<string, "here" | "elsewhere">();
const otherTabs = globalThis.BroadcastChannel && new BroadcastChannel("agiraph-taken-back");
// This tab has restored the same message from the outbox, or is about to, and would send it.
otherTabs?.addEventListener("message", ({ data }: MessageEvent<string>) => {
  takenBack.set(data, takenBack.get(data) ?? "elsewhere");
  live.removeUnsent(data);
});

/** The messages of one agent arrive in the order in which they were written. */
const postInOrder = (unsent: UnsentMessage, task: (unsent: UnsentMessage) => Promise<void>): Promise<void> => inOrder(`post ${unsent.agentId}`, () => task(unsent));

/** Give a message to the server, and show it in its conversation. */
async function post({ agentId, text, mode, clientId, attachments, mentions = [], edits, stopWork = false }: UnsentMessage): Promise<void> {
  const message = await unwrap(
    api.POST("/api/agents/{agent}/send", { params: { path: { agent: agentId } }, body: { message: text, mode, client_id: clientId, attachments, mentions, edits: edits ?? null, stop_work: stopWork } }),
  );
  const key = ["conversation", agentId];
  queryClient.setQueryData<unknown>(key, (known: { messages: { id: string }[] } | undefined) =>
    known && !known.messages.some((one) => one.id === message.id) ? { ...known, messages: [...known.messages, message] } : known,
  );
  // Of several mentioned agents the response names one; the conversation shows what went to each.
  if (mentions.length > 1) void queryClient.invalidateQueries({ queryKey: key });
}

async function postUnsent(unsent: UnsentMessage): Promise<void> {
  // Another tab has taken it back while it waited for the message before it.
  if (!unsentOf(unsent.clientId)) return;
  try {
    // Before the unsent message is removed: otherwise it would disappear until the next fetch.
    await post(unsent);
    live.removeUnsent(unsent.clientId);
    void forgetUnsent(unsent.clientId);
    retries = 0;
  } catch (error) {
    // Signed out is no refusal of the message: it is sent after the next sign-in.
    const isLater = error instanceof ApiError && (error.isOffline || error.status === 503 || error.status === 401);
    // Kept now, a message that was taken back meanwhile would be sent by the next page.
    if (!unsentOf(unsent.clientId)) return;
    const change = { state: isLater ? "queued" : "refused", reason: error instanceof Error ? error.message : "The server refused the message." } as const;
    live.updateUnsent(unsent.clientId, change);
    // If the browser refuses this, it still has the message as it was sent.
    void keepUnsent({ ...unsent, ...change });
    if (isLater) retryLater();
  }
}

/** A message that failed over a live connection is tried again after two seconds, then after twice as long each time, up to a minute. */
const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 60_000;
let retries = 0;
let retryTimer: ReturnType<typeof setTimeout> | undefined;

/** Send the queued messages again after a while. Without a connection the next hello does it. */
function retryLater(): void {
  if (retryTimer !== undefined || live.store.getState().connection !== "live") return;
  retryTimer = setTimeout(() => {
    retryTimer = undefined;
    resendQueued();
  }, Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** retries++));
}

function resendQueued(): void {
  for (const unsent of live.store.getState().unsent) if (unsent.state === "queued") resendMessage(unsent);
}

/** When the outbox of the earlier pages was read. */
let restored = Promise.resolve();

/** Show the messages that an earlier page could not deliver, and send them if the server is there. */
async function restoreUnsent(): Promise<void> {
  const kept = await keptUnsent();
  for (const clientId of kept.takenBack) takenBack.set(clientId, takenBack.get(clientId) ?? "here");
  for (const one of kept.unsent) {
    if (unsentOf(one.clientId) || takenBack.has(one.clientId)) continue;
    live.putUnsent({ ...one, state: one.state === "refused" ? "refused" : "queued" });
  }
  if (live.store.getState().connection === "live") resendQueued();
}

export type { Draft, UnsentMessage };
