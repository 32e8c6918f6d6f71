/**
 * Store: everything that came over the line, for screens to select from.
 *
 * Frames are kept until the next picture is drawn and then taken together. A team's log is loaded when
 * somebody looks at it; until then only its number is known, so that a reconnect misses nothing.
 */
import { createStore, type StoreApi } from "zustand/vanilla";
import { append, emptyLog, type Event, type Frame, type Lane, type Log, prepend } from "@/live/log";
import type { Phase } from "@/live/socket";

export const PAGE = 500;

export interface Draft {
  teamId: string;
  agentId: string;
  nodeId: string;
  threadId: string;
  lane: Lane;
  text: string;
}

/** Something the person said that the server has not confirmed. */
export interface Unsent {
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
  phase: Phase;
  retryAt: number | null;
  /** Since when the line is lost; blips stay silent. */
  lostAt: number | null;
  epoch: string | null;
  build: string | null;
  /** The server runs another version than this page came from. */
  isOutdated: boolean;
  cursors: Record<string, number>;
  logs: Record<string, Log>;
  drafts: Record<string, Draft>;
  unsent: Unsent[];
}

export interface LiveOptions {
  events: (team: string, after: number, limit: number) => Promise<Event[]>;
  /** What is new, once per picture; also for teams whose log nobody looks at. */
  onEvents?: (events: Event[]) => void;
  /** Everything shown has to be loaded anew: after a reconnect, or when too much was missed. */
  onStale?: (team: string | null) => void;
  /** Calls back when the next picture is drawn. */
  schedule?: (flush: () => void) => void;
  now?: () => number;
}

const DRAFT_ENDS = new Set(["turn.added", "node.completed", "node.failed", "node.cancelled", "node.waiting"]);

export class Live {
  readonly store: StoreApi<LiveState>;
  private queue: Frame[] = [];
  private isScheduled = false;
  /** Events told while their team's log is being loaded. */
  private held: Record<string, Event[]> = {};
  private loading: Record<string, Promise<void>> = {};

  constructor(private readonly options: LiveOptions) {
    this.store = createStore<LiveState>(() => ({
      phase: "connecting",
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

  phase(phase: Phase, retryAt: number | null): void {
    const now = (this.options.now ?? Date.now)();
    const lostAt = phase === "live" || phase === "signed-out" ? null : (this.state.lostAt ?? now);
    this.store.setState({ phase, retryAt, lostAt });
  }

  receive(frame: Frame): void {
    this.queue.push(frame);
    if (this.isScheduled) return;
    this.isScheduled = true;
    (this.options.schedule ?? ((flush) => setTimeout(flush, 0)))(() => this.flush());
  }

  flush(): void {
    this.isScheduled = false;
    const frames = this.queue;
    this.queue = [];
    const events: Event[] = [];
    const drafts = { ...this.state.drafts };
    let touched = false;
    for (const frame of frames) {
      switch (frame.op) {
        case "hello":
          this.greet(frame);
          for (const thread of Object.keys(drafts)) delete drafts[thread];
          touched = true;
          break;
        case "event":
          events.push(frame.event as Event);
          touched = endDrafts(drafts, frame.event as Event) || touched;
          break;
        case "delta":
        case "draft":
          write(drafts, frame);
          touched = true;
          break;
        case "resync":
          this.resync(frame.team_id, frame.head);
          break;
        case "ping":
          break;
      }
    }
    if (touched) this.store.setState({ drafts });
    if (events.length > 0) this.take(events);
  }

  private greet(hello: Extract<Frame, { op: "hello" }>): void {
    const { epoch, build, cursors } = this.state;
    const isOther = epoch !== null && epoch !== hello.epoch;
    const isBehind = Object.entries(cursors).some(([team, seq]) => (hello.heads[team] ?? 0) < seq);
    const wasHere = epoch !== null;
    if (isOther || isBehind) this.store.setState({ logs: {}, cursors: { ...hello.heads } });
    else this.store.setState({ cursors: { ...hello.heads, ...cursors } });
    this.store.setState({ epoch: hello.epoch, build: hello.build, isOutdated: this.state.isOutdated || (build !== null && build !== hello.build) });
    if (wasHere) this.options.onStale?.(null);
  }

  private resync(team: string, head: number): void {
    const { [team]: _, ...logs } = this.state.logs;
    this.store.setState({ logs, cursors: { ...this.state.cursors, [team]: head } });
    this.options.onStale?.(team);
  }

  private take(events: Event[]): void {
    const cursors = { ...this.state.cursors };
    const logs = { ...this.state.logs };
    const byTeam = new Map<string, Event[]>();
    const news: Event[] = [];
    for (const event of events) {
      const known = cursors[event.team_id];
      if (known !== undefined && event.seq <= known) continue;
      cursors[event.team_id] = event.seq;
      news.push(event);
      byTeam.set(event.team_id, [...(byTeam.get(event.team_id) ?? []), event]);
    }
    const gaps: string[] = [];
    for (const [team, fresh] of byTeam) {
      if (team in this.loading) {
        this.held[team] = [...(this.held[team] ?? []), ...fresh];
      } else if (logs[team] !== undefined) {
        const { log, gap } = append(logs[team], fresh);
        logs[team] = log;
        if (gap) {
          this.held[team] = [...(this.held[team] ?? []), ...fresh];
          gaps.push(team);
        }
      }
    }
    this.store.setState({ cursors, logs });
    for (const team of gaps) void this.once(team, () => this.backfill(team));
    if (news.length > 0) this.options.onEvents?.(news);
  }

  /** See to it that the newest page of a team's log is loaded. */
  look(team: string, coordinator: string | null): Promise<void> {
    if (this.state.logs[team] !== undefined && !(team in this.loading)) return Promise.resolve();
    return this.once(team, async () => {
      const head = this.state.cursors[team] ?? 0;
      const start = Math.max(0, head - PAGE);
      const page = await this.options.events(team, start, PAGE);
      const begun = { ...emptyLog(start), coordinator };
      this.keep(team, append(begun, page).log);
      await this.backfill(team);
    });
  }

  /** One more page of what happened before. */
  older(team: string): Promise<void> {
    const first = this.state.logs[team]?.first ?? 0;
    if (first <= 1) return Promise.resolve();
    return this.once(team, async () => {
      const start = Math.max(0, first - 1 - PAGE);
      const page = await this.options.events(team, start, first - 1 - start);
      const log = this.state.logs[team];
      if (log !== undefined) this.keep(team, prepend(log, page));
      await this.backfill(team);
    });
  }

  /** Fetch what is missing after the last event of a log, up to what was told meanwhile. */
  private async backfill(team: string): Promise<void> {
    for (;;) {
      const log = this.state.logs[team];
      if (log === undefined) return;
      const held = this.held[team] ?? [];
      const joined = append(log, held);
      if (!joined.gap) {
        delete this.held[team];
        return this.keep(team, joined.log);
      }
      const page = await this.options.events(team, joined.log.last, PAGE);
      this.keep(team, append(joined.log, page).log);
      if (page.length === 0) {
        delete this.held[team];
        return;
      }
    }
  }

  private keep(team: string, log: Log): void {
    this.store.setState({ logs: { ...this.state.logs, [team]: log } });
  }

  private once(team: string, act: () => Promise<void>): Promise<void> {
    const running = this.loading[team];
    if (running !== undefined) return running;
    const begun = act().finally(() => {
      delete this.loading[team];
    });
    this.loading[team] = begun;
    return begun;
  }

  say(unsent: Unsent): void {
    this.store.setState({ unsent: [...this.state.unsent.filter((one) => one.clientId !== unsent.clientId), unsent] });
  }

  said(clientId: string, change?: Partial<Unsent>): void {
    const rest = this.state.unsent;
    this.store.setState({
      unsent: change
        ? rest.map((one) => (one.clientId === clientId ? { ...one, ...change } : one))
        : rest.filter((one) => one.clientId !== clientId),
    });
  }
}

function write(drafts: Record<string, Draft>, frame: Extract<Frame, { op: "delta" | "draft" }>): void {
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
  if (!DRAFT_ENDS.has(event.type)) return false;
  const node = (event.data as { node_id?: string }).node_id;
  const ended = Object.values(drafts).filter((draft) => draft.nodeId === node);
  for (const draft of ended) delete drafts[draft.threadId];
  return ended.length > 0;
}
