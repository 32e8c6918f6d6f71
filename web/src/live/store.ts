/**
 * Store: the state that the server sends over the WebSocket, for components to select from.
 *
 * Frames are collected and applied together, when `scheduleFlush` says. A team's event log is loaded when a page
 * shows the team. For all other teams only the cursor is kept (the number of the last received event), so that
 * the server can send the missing events after a reconnect.
 */
import { createStore, type StoreApi } from "zustand/vanilla";
import { append, emptyLog, type Event, type Frame, type Lane, type TeamLog, prepend } from "@/live/log";
import type { ConnectionState } from "@/live/socket";

export const EVENTS_PER_PAGE = 500;

/** The text of a reply or a turn while the model writes it. */
export interface Draft {
  teamId: string;
  agentId: string;
  nodeId: string;
  threadId: string;
  lane: Lane;
  text: string;
}

/** A message of the person that the server has not confirmed. */
export interface UnsentMessage {
  clientId: string;
  agentId: string;
  text: string;
  at: string;
  mode: "send" | "nudge";
  state: "sending" | "queued" | "refused";
  /** Why the server refused it. */
  reason: string;
  attachments: { name: string; media_type: string; data: string }[];
  /** The ids of the agents that it mentions: it goes to these instead of `agentId`. */
  mentions?: string[];
  /** The id of the message that it takes the place of. */
  edits?: string;
  /** Whether the work that was begun for that message stops. */
  stopWork?: boolean;
}

export interface LiveState {
  connection: ConnectionState;
  retryAt: number | null;
  /** When the connection was lost; null while it is there. */
  lostAt: number | null;
  /** The id of the server's database; null before the first hello. */
  epoch: string | null;
  build: string | null;
  /** Whether the server now runs another version than the one this page was loaded from. */
  isOutdated: boolean;
  /** The number of the last received event, by team: the server resumes after it. */
  cursors: Record<string, number>;
  logs: Record<string, TeamLog>;
  drafts: Record<string, Draft>;
  unsent: UnsentMessage[];
}

interface LiveOptions {
  fetchEvents: (team: string, after: number, limit: number) => Promise<Event[]>;
  /** Called with each batch of new events of all teams, also of those without a loaded log. */
  onEvents?: (events: Event[]) => void;
  /** All cached data may be out of date: after a reconnect (null), or when the server no longer has a team's missed events. */
  onReload?: (team: string | null) => void;
  /** Calls `flush` once, soon: what arrives until then is one batch. */
  scheduleFlush?: (flush: () => void) => void;
  now?: () => number;
}

const EVENTS_ENDING_DRAFT = new Set(["turn.added", "node.completed", "node.partial", "node.failed", "node.cancelled", "node.waiting"]);

/** Applies the server's frames to a zustand store. It has no dependency on React or the DOM, so that unit tests can run it. */
export class LiveStore {
  readonly store: StoreApi<LiveState>;
  private frames: Frame[] = [];
  private isScheduled = false;
  /** Events that arrived while their team's log was being loaded. */
  private buffered: Record<string, Event[]> = {};
  /** The running load of each team's log. */
  private loading: Record<string, Promise<void>> = {};

  constructor(private readonly options: LiveOptions) {
    this.store = createStore<LiveState>(() => ({
      connection: "connecting",
      retryAt: null,
      lostAt: null,
      epoch: null,
      build: null,
      isOutdated: false,
      cursors: {},
      logs: {},
      drafts: {},
      unsent: [],
    }));
  }

  private get state(): LiveState {
    return this.store.getState();
  }

  setConnection(connection: ConnectionState, retryAt: number | null): void {
    const now = (this.options.now ?? Date.now)();
    const lostAt = connection === "live" || connection === "signed-out" ? null : (this.state.lostAt ?? now);
    this.store.setState({ connection, retryAt, lostAt });
  }

  receive(frame: Frame): void {
    this.frames.push(frame);
    if (this.isScheduled) return;
    this.isScheduled = true;
    (this.options.scheduleFlush ?? ((flush) => setTimeout(flush, 0)))(() => this.flush());
  }

  flush(): void {
    this.isScheduled = false;
    const frames = this.frames;
    this.frames = [];
    const events: Event[] = [];
    const drafts = { ...this.state.drafts };
    let haveDraftsChanged = false;
    for (const frame of frames) {
      switch (frame.op) {
        case "hello":
          this.applyHello(frame);
          for (const thread of Object.keys(drafts)) delete drafts[thread];
          haveDraftsChanged = true;
          break;
        case "event":
          events.push(frame.event as Event);
          haveDraftsChanged = endDrafts(drafts, frame.event as Event) || haveDraftsChanged;
          break;
        case "delta":
        case "draft":
          applyDraftFrame(drafts, frame);
          haveDraftsChanged = true;
          break;
        case "resync":
          this.resync(frame.team_id, frame.head);
          break;
        case "ping":
          break;
      }
    }
    if (haveDraftsChanged) this.store.setState({ drafts });
    if (events.length > 0) this.applyEvents(events);
  }

  private applyHello(hello: Extract<Frame, { op: "hello" }>): void {
    const { epoch, build, cursors } = this.state;
    // A cursor is valid for one database only. If the server has another one, or restored an older backup (it is behind
    // our cursor), drop everything: resuming would silently skip events.
    const isOtherDatabase = epoch !== null && epoch !== hello.epoch;
    const isServerBehind = Object.entries(cursors).some(([team, seq]) => (hello.heads[team] ?? 0) < seq);
    const isReconnect = epoch !== null;
    if (isOtherDatabase || isServerBehind) this.store.setState({ logs: {}, cursors: { ...hello.heads } });
    // Keep our own cursors: the server sends the events between them and its heads right after the hello.
    else this.store.setState({ cursors: { ...hello.heads, ...cursors } });
    this.store.setState({ epoch: hello.epoch, build: hello.build, isOutdated: this.state.isOutdated || (build !== null && build !== hello.build) });
    if (isReconnect) this.options.onReload?.(null);
  }

  /** The server cannot send the missed events: forget the log and continue at the head. */
  private resync(team: string, head: number): void {
    const { [team]: _, ...logs } = this.state.logs;
    this.store.setState({ logs, cursors: { ...this.state.cursors, [team]: head } });
    this.options.onReload?.(team);
  }

  private applyEvents(events: Event[]): void {
    const cursors = { ...this.state.cursors };
    const logs = { ...this.state.logs };
    const byTeam = new Map<string, Event[]>();
    const newEvents: Event[] = [];
    for (const event of events) {
      const known = cursors[event.team_id];
      // After a reconnect the server may send events again.
      if (known !== undefined && event.seq <= known) continue;
      cursors[event.team_id] = event.seq;
      newEvents.push(event);
      byTeam.set(event.team_id, [...(byTeam.get(event.team_id) ?? []), event]);
    }
    const teamsWithGaps: string[] = [];
    for (const [team, teamEvents] of byTeam) {
      if (team in this.loading) {
        this.buffered[team] = [...(this.buffered[team] ?? []), ...teamEvents];
      } else if (logs[team] !== undefined) {
        const { log, hasGap } = append(logs[team], teamEvents);
        logs[team] = log;
        if (hasGap) {
          this.buffered[team] = [...(this.buffered[team] ?? []), ...teamEvents];
          teamsWithGaps.push(team);
        }
      }
    }
    this.store.setState({ cursors, logs });
    for (const team of teamsWithGaps) void this.singleFlight(team, () => this.backfill(team));
    if (newEvents.length > 0) this.options.onEvents?.(newEvents);
  }

  /** Load the newest page of a team's log, unless the log is loaded. */
  loadNewest(team: string, coordinator: string | null): Promise<void> {
    if (this.state.logs[team] !== undefined && !(team in this.loading)) return Promise.resolve();
    return this.singleFlight(team, async () => {
      const head = this.state.cursors[team] ?? 0;
      const start = Math.max(0, head - EVENTS_PER_PAGE);
      const page = await this.options.fetchEvents(team, start, EVENTS_PER_PAGE);
      const started = { ...emptyLog(start), coordinator };
      this.setLog(team, append(started, page).log);
      await this.backfill(team);
    });
  }

  /** Load one more page of older events. */
  loadOlder(team: string): Promise<void> {
    const first = this.state.logs[team]?.first ?? 0;
    if (first <= 1) return Promise.resolve();
    return this.singleFlight(team, async () => {
      const start = Math.max(0, first - 1 - EVENTS_PER_PAGE);
      const page = await this.options.fetchEvents(team, start, first - 1 - start);
      const log = this.state.logs[team];
      if (log !== undefined) this.setLog(team, prepend(log, page));
      await this.backfill(team);
    });
  }

  /** Fetch the events between the end of the log and the buffered ones, then append the buffered ones. */
  private async backfill(team: string): Promise<void> {
    for (;;) {
      const log = this.state.logs[team];
      if (log === undefined) return;
      const buffered = this.buffered[team] ?? [];
      const appended = append(log, buffered);
      if (!appended.hasGap) {
        delete this.buffered[team];
        return this.setLog(team, appended.log);
      }
      const page = await this.options.fetchEvents(team, appended.log.last, EVENTS_PER_PAGE);
      this.setLog(team, append(appended.log, page).log);
      // The server has no events there: give up, or this loop would not end.
      if (page.length === 0) {
        delete this.buffered[team];
        return;
      }
    }
  }

  private setLog(team: string, log: TeamLog): void {
    this.store.setState({ logs: { ...this.state.logs, [team]: log } });
  }

  /** Run one load per team at a time. A call while one is running gets the running one. */
  private singleFlight(team: string, task: () => Promise<void>): Promise<void> {
    const inFlight = this.loading[team];
    if (inFlight !== undefined) return inFlight;
    const started = task().finally(() => {
      delete this.loading[team];
    });
    this.loading[team] = started;
    return started;
  }

  putUnsent(unsent: UnsentMessage): void {
    this.store.setState({ unsent: [...this.state.unsent.filter((one) => one.clientId !== unsent.clientId), unsent] });
  }

  updateUnsent(clientId: string, change: Partial<UnsentMessage>): void {
    this.store.setState({ unsent: this.state.unsent.map((one) => (one.clientId === clientId ? { ...one, ...change } : one)) });
  }

  removeUnsent(clientId: string): void {
    this.store.setState({ unsent: this.state.unsent.filter((one) => one.clientId !== clientId) });
  }
}

function applyDraftFrame(drafts: Record<string, Draft>, frame: Extract<Frame, { op: "delta" | "draft" }>): void {
  const known = drafts[frame.thread_id];
  // A delta replaces the text from its offset on: a repeated delta changes nothing.
  const before = frame.op === "delta" && known ? known.text.slice(0, frame.offset) : "";
  drafts[frame.thread_id] = {
    teamId: frame.team_id,
    agentId: frame.agent_id,
    nodeId: frame.node_id,
    threadId: frame.thread_id,
    lane: frame.lane,
    text: before + frame.text,
  };
}

function endDrafts(drafts: Record<string, Draft>, event: Event): boolean {
  if (!EVENTS_ENDING_DRAFT.has(event.type)) return false;
  const node = (event.data as { node_id?: string }).node_id;
  const ended = Object.values(drafts).filter((draft) => draft.nodeId === node);
  for (const draft of ended) delete drafts[draft.threadId];
  return ended.length > 0;
}

/** A hidden page runs no animation frames. What it receives is handled after this time. */
const HIDDEN_MS = 250;

/** Call the function at the second animation frame from now: each batch renders the message that is being written anew, and nobody reads faster than that. In a page that is hidden, or is hidden before the frame comes, call it after a short time. */
export function atSecondFrame(flush: () => void): void {
  const call = () => {
    clearTimeout(timer);
    // A page that is hidden for hours would collect one frame for each batch.
    cancelAnimationFrame(frame);
    flush();
  };
  const timer = setTimeout(call, HIDDEN_MS);
  let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(call)));
}
