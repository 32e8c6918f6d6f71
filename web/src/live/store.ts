/**
 * Store: everything that came over the line, for screens to select from.
 *
 * Frames are kept until the next picture is drawn and then taken together. A team's log is loaded when
 * somebody looks at it; until then only its number is known, so that a reconnect misses nothing.
 */
import { createStore, type StoreApi } from "zustand/vanilla";
import { append, emptyLog, type Event, type Frame, type Lane, type TeamLog, prepend } from "@/live/log";
import type { ConnectionState } from "@/live/socket";

export const EVENTS_PER_PAGE = 500;

export interface Draft {
  teamId: string;
  agentId: string;
  nodeId: string;
  threadId: string;
  lane: Lane;
  text: string;
}

/** Something the person said that the server has not confirmed. */
export interface UnsentMessage {
  clientId: string;
  agentId: string;
  text: string;
  at: string;
  mode: "send" | "nudge";
  state: "sending" | "queued" | "refused";
  /** Why it was refused. */
  reason: string;
  attachments: { name: string; media_type: string; data: string }[];
}

export interface LiveState {
  connection: ConnectionState;
  retryAt: number | null;
  /** Since when the line is lost; blips stay silent. */
  lostAt: number | null;
  epoch: string | null;
  build: string | null;
  /** The server runs another version than this page came from. */
  isOutdated: boolean;
  cursors: Record<string, number>;
  logs: Record<string, TeamLog>;
  drafts: Record<string, Draft>;
  unsent: UnsentMessage[];
}

export interface LiveOptions {
  fetchEvents: (team: string, after: number, limit: number) => Promise<Event[]>;
  /** What is new, once per picture; also for teams whose log nobody looks at. */
  onEvents?: (events: Event[]) => void;
  /** Everything shown has to be loaded anew: after a reconnect, or when too much was missed. */
  onReload?: (team: string | null) => void;
  /** Calls back when the next picture is drawn. */
  scheduleFlush?: (flush: () => void) => void;
  now?: () => number;
}

const EVENTS_ENDING_DRAFT = new Set(["turn.added", "node.completed", "node.failed", "node.cancelled", "node.waiting"]);

export class LiveStore {
  readonly store: StoreApi<LiveState>;
  private frames: Frame[] = [];
  private isScheduled = false;
  /** Events told while their team's log is being loaded. */
  private buffered: Record<string, Event[]> = {};
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
    const isOtherDatabase = epoch !== null && epoch !== hello.epoch;
    const isServerBehind = Object.entries(cursors).some(([team, seq]) => (hello.heads[team] ?? 0) < seq);
    const isReconnect = epoch !== null;
    if (isOtherDatabase || isServerBehind) this.store.setState({ logs: {}, cursors: { ...hello.heads } });
    else this.store.setState({ cursors: { ...hello.heads, ...cursors } });
    this.store.setState({ epoch: hello.epoch, build: hello.build, isOutdated: this.state.isOutdated || (build !== null && build !== hello.build) });
    if (isReconnect) this.options.onReload?.(null);
  }

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

  /** See to it that the newest page of a team's log is loaded. */
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

  /** One more page of what happened before. */
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

  /** Fetch what is missing after the last event of a log, up to what was told meanwhile. */
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
      if (page.length === 0) {
        delete this.buffered[team];
        return;
      }
    }
  }

  private setLog(team: string, log: TeamLog): void {
    this.store.setState({ logs: { ...this.state.logs, [team]: log } });
  }

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
