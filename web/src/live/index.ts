/** Live: the one line of this page, and hooks that select from what it brought. */
import { useStore } from "zustand";
import { ApiError, api, onSignedOut, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { type Draft, Live, type LiveState, type Unsent } from "@/live/store";
import { staleness } from "@/live/invalidation";
import { Line, type SocketLike } from "@/live/socket";
import type { Event } from "@/live/log";
import { fresh } from "@/lib/randomId";

const markStale = staleness(queryClient);
const listeners = new Set<(events: Event[]) => void>();
/** Hear of every new event; returns how to stop. */
export function onNews(hear: (events: Event[]) => void): () => void {
  listeners.add(hear);
  return () => void listeners.delete(hear);
}

export const live = new Live({
  events: (team, after, limit) =>
    unwrap(api.GET("/api/teams/{team}/events", { params: { path: { team }, query: { after, limit } } })) as Promise<Event[]>,
  onEvents: (events) => {
    markStale(events);
    for (const hear of listeners) hear(events);
  },
  onStale: () => void queryClient.invalidateQueries(),
  // A hidden page is drawn seldom; what it hears must not pile up for it.
  schedule: (flush) => (document.hidden ? setTimeout(flush, 250) : requestAnimationFrame(flush)),
});

async function isSignedIn(): Promise<boolean> {
  try {
    return (await fetch("/api/teams?limit=1")).status !== 401;
  } catch {
    return true;
  }
}

export const line = new Line({
  open: () => new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/events`) as unknown as SocketLike,
  cursors: () => live.store.getState().cursors,
  onFrame: (frame) => {
    live.receive(frame);
    if (frame.op === "hello") sendQueued();
  },
  onPhase: (phase, retryAt) => live.phase(phase, retryAt),
  isSignedIn,
});

export function startLive(): void {
  onSignedOut(() => {
    line.stop();
    live.phase("signed-out", null);
  });
  addEventListener("online", () => line.wake());
  document.addEventListener("visibilitychange", () => document.hidden || line.wake());
  line.start();
}

export function useLive<T>(select: (state: LiveState) => T): T {
  return useStore(live.store, select);
}

/** Say something; it shows at once, and goes out again with the same name when the line is back. */
export function say(agentId: string, text: string, mode: Unsent["mode"], attachments: Unsent["attachments"] = []): void {
  const unsent: Unsent = { clientId: fresh(), agentId, text, mode, attachments, at: new Date().toISOString(), state: "sending", reason: "" };
  live.say(unsent);
  void send(unsent);
}

export function sayAgain(unsent: Unsent): void {
  live.said(unsent.clientId, { state: "sending", reason: "" });
  void send(unsent);
}

export const takeBack = (unsent: Unsent): void => live.said(unsent.clientId);

async function send(unsent: Unsent): Promise<void> {
  try {
    const message = await unwrap(
      api.POST("/api/agents/{agent}/send", {
        params: { path: { agent: unsent.agentId } },
        body: { message: unsent.text, mode: unsent.mode, client_id: unsent.clientId, attachments: unsent.attachments },
      }),
    );
    const key = ["conversation", unsent.agentId];
    queryClient.setQueryData<unknown>(key, (known: { said: { id: string }[] } | undefined) =>
      known && !known.said.some((one) => one.id === message.id) ? { ...known, said: [...known.said, message] } : known,
    );
    live.said(unsent.clientId);
  } catch (error) {
    const isOffline = error instanceof ApiError && (error.isOffline || error.status === 503);
    live.said(unsent.clientId, {
      state: isOffline ? "queued" : "refused",
      reason: error instanceof Error ? error.message : "The server refused it.",
    });
  }
}

function sendQueued(): void {
  for (const unsent of live.store.getState().unsent) if (unsent.state === "queued") sayAgain(unsent);
}

export type { Draft, Unsent };
