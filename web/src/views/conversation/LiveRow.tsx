/** LiveRow: the steps of an agent in one line: what it does at this moment, with its words as it writes them; once it is done, how many steps it took. */
import { Link } from "@tanstack/react-router";
import { ChevronRight } from "lucide-react";
import { type ReactNode, useContext, useState } from "react";
import { useLive } from "@/live";
import type { Row, ToolCall } from "@/live/log";
import { cx } from "@/lib/cx";
import { duration } from "@/lib/format";
import { HUMAN } from "@/lib/participants";
import { useNow } from "@/parts/RelativeTime";
import { withoutOpenMarks } from "@/reading/fence";
import { Literal } from "@/reading/Literal";
import { Markdown } from "@/reading/Markdown";
import { stepsText } from "@/views/conversation/folding";
import { ItemView, mainArgument, senderName, TeamContext } from "@/views/conversation/rows";

/** What an agent does in a call, by its tool, and the argument that says with what. Empty: the verb says all. */
const DOES: Record<string, [verb: string, argument?: string]> = {
  read_file: ["reads"], write_file: ["writes"], edit_file: ["edits"], list_files: ["lists", "path"], bash: ["runs"], web_search: ["searches for"], web_fetch: ["reads"], find_in_page: ["searches in", "url"],
  ask_human: ["asks"], send_message: ["writes to", "to"], check_board: ["looks at the board", ""], create_work_node: ["plans", "title"], assign_task: ["gives away", "description"], spawn_worker: ["hires", "name"],
  checkpoint: ["notes how far it is", ""], publish: ["hands in its result", ""], finish: ["hands in the result", ""], memory_write: ["notes in", "path"],
};

/** Return the newest call if it has no result yet, and since when the agent does what it does. */
function activityOf(rows: readonly Row[]): { call: ToolCall | null; since: string | null } {
  const last = rows.at(-1);
  if (last?.kind !== "tools") return { call: null, since: last?.at ?? null };
  const call = last.calls.find((one) => one.endedAt === null) ?? null;
  return { call, since: call ? call.startedAt : (last.calls.at(-1)?.endedAt ?? last.at) };
}

/** What an agent does in a call, in words. */
function Doing({ call }: { call: ToolCall | null }) {
  if (!call) return "is thinking";
  const [verb, argument] = DOES[call.name] ?? [`calls ${call.name}`, ""];
  const words = argument === undefined ? mainArgument(call) : String(call.arguments[argument] ?? "").split("\n")[0]!;
  return (
    <>
      {verb} {words && <Literal text={words} />}
    </>
  );
}

interface Props {
  agentId: string;
  /** The steps that the line stands for. */
  rows: readonly Row[];
  /** All that the page knows of the agent, to say what it does now; the steps if not given. */
  known?: readonly Row[];
  isLive: boolean;
  /** Its name leads to its page. */
  isLinked?: boolean;
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
}

export function LiveRow({ agentId, rows, known = rows, isLive, isLinked = false, isOpen, onOpen }: Props) {
  const info = useContext(TeamContext);
  const now = useNow(1000, isLive);
  const words = useLive((state) => (isLive ? Object.values(state.drafts).find((one) => one.agentId === agentId && one.lane === "work")?.text : undefined));
  const { call, since } = activityOf(known);
  const took = since === null ? 0 : now - Date.parse(since);
  const name = senderName(info, agentId);
  const steps = stepsText(rows);
  const line: ReactNode = isLive ? (
    <>
      <span dir="ltr" className="literal min-w-0 truncate">
        <Doing call={call} />
      </span>
      {took >= 1_000 && <span className="tabular shrink-0 text-xs text-ink-3">· {duration(took)}</span>}
    </>
  ) : (
    <span className="tabular min-w-0 truncate text-xs text-ink-3">· {steps}</span>
  );
  return (
    <div data-live={isLive || undefined} data-agent={agentId} className="py-1 pr-4 pl-4 text-sm text-ink-2 max-md:px-3">
      <div className="flex items-center gap-3">
        <span className="flex h-5 w-8 shrink-0 items-center justify-center">
          <span className={cx("size-1.5 rounded-full", isLive ? "pulse bg-work-dot" : "bg-line-2")} aria-hidden />
        </span>
        {/* The gap is a space: the line reads as a sentence, also when it is copied. */}
        <span className="flex min-w-0 items-baseline gap-1">
          {isLinked ? (
            <Link to="/t/$team/a/$agent" params={{ team: info.team, agent: agentId }} dir="auto" className="shrink-0 font-medium text-ink hover:underline pointer-coarse:leading-[44px]">
              {name}
            </Link>
          ) : (
            <span dir="auto" className="shrink-0 font-medium text-ink">{name}</span>
          )}{" "}
          {line}
        </span>
        {steps && (
          <button type="button" aria-expanded={isOpen} aria-label={`${isOpen ? "Hide" : "Show"} the steps of ${name}`} onClick={() => onOpen(!isOpen)} className="flex min-h-7 shrink-0 items-center gap-1 rounded-sm text-xs text-ink-3 hover:text-ink pointer-coarse:min-h-11 pointer-coarse:min-w-11">
            {isLive && <span className="tabular">{steps.split(" · ", 1)[0]}</span>}
            <ChevronRight className={cx("size-3.5 transition-transform", isOpen && "rotate-90")} aria-hidden />
          </button>
        )}
      </div>
      {words && (
        // The newest words are at the lower edge.
        <div className="ml-11 flex max-h-24 flex-col-reverse overflow-hidden text-ink-2">
          <Markdown text={withoutOpenMarks(words)} breaks />
        </div>
      )}
    </div>
  );
}

/** The line of a teammate in the conversation of the coordinator: it opens to the steps of the teammate. */
export function MateRow({ agentId, rows, known, isLive }: Pick<Props, "agentId" | "rows" | "known" | "isLive">) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <LiveRow agentId={agentId} rows={rows} known={known} isLive={isLive} isLinked isOpen={isOpen} onOpen={setIsOpen} />
      {isOpen && (
        <div className="scroll max-h-[50vh] border-y border-line bg-canvas" tabIndex={0} role="group" aria-label="Steps">
          {rows.map((row) => (
            <ItemView key={row.key} item={{ kind: "row", key: row.key, row, message: null, isContinued: false, edited: "no" }} isHighlighted={false} onEarlier={nothing} onFold={nothing} isLoading={false} agentId={agentId} />
          ))}
        </div>
      )}
    </>
  );
}

const nothing = () => undefined;

export interface Mate {
  agentId: string;
  rows: readonly Row[];
  known: readonly Row[];
  isLive: boolean;
}

/** The most teammates that are done and have a line between two messages. */
const MOST_DONE = 5;

const withPerson = (row: Row): boolean => row.kind === "message" && (row.sender === HUMAN || row.recipient === HUMAN);

interface Cut {
  ends: readonly number[];
  parts: Row[][];
}
const cuts = new WeakMap<readonly Row[], Cut>();

/** Return the rows of a teammate cut at these events, without words with the person. The cut is kept: most events are of others. */
function cutAt(rows: readonly Row[], ends: readonly number[]): Row[][] {
  const known = cuts.get(rows);
  if (known && known.ends.length === ends.length && known.ends.at(-1) === ends.at(-1) && known.ends[0] === ends[0]) return known.parts;
  const parts = Array.from({ length: ends.length + 1 }, (): Row[] => []);
  let part = 0;
  for (const row of rows) {
    while (part < ends.length && row.seq > ends[part]!) part++;
    if (!withPerson(row)) parts[part]!.push(row);
  }
  cuts.set(rows, { ends, parts });
  return parts;
}

interface Lines {
  /** What the teammates did before each message, by the key of its row. */
  before: ReadonlyMap<string, Mate[]>;
  /** What they have done since the last one. */
  now: Mate[];
}

/** Return the lines of the teammates between the words of the person and the coordinator, in the order in which they joined. Who works has a line, and who has ended last. */
export function linesOfMates(mates: readonly { id: string; isLive: boolean }[], rowsByAgent: Readonly<Record<string, Row[]>>, spoken: readonly Row[]): Lines {
  const ends = spoken.filter((row) => withPerson(row) && row.seq > 0);
  const seqs = ends.map((row) => row.seq);
  const all = mates.map(({ id, isLive }) => ({ id, isLive, known: rowsByAgent[id] ?? NOTHING, parts: cutAt(rowsByAgent[id] ?? NOTHING, seqs) }));
  const linesOf = (part: number): Mate[] => {
    const isNow = part === ends.length;
    const found = all.map(({ id, isLive, known, parts }): Mate => ({ agentId: id, rows: parts[part]!, known, isLive: isNow && isLive }));
    const done = found.filter((mate) => !mate.isLive && mate.rows.some((row) => row.kind !== "system")).sort((a, b) => b.rows.at(-1)!.seq - a.rows.at(-1)!.seq);
    const shown = new Set(done.slice(0, MOST_DONE));
    return found.filter((mate) => mate.isLive || shown.has(mate));
  };
  return { before: new Map(ends.map((row, part) => [row.key, linesOf(part)] as const).filter(([, lines]) => lines.length > 0)), now: linesOf(ends.length) };
}

const NOTHING: readonly Row[] = [];
