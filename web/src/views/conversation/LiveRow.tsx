/** LiveRow: what an agent is doing at this moment, below the conversation while it works and writes nothing. */
import { useContext } from "react";
import type { Row, ToolCall } from "@/live/log";
import { duration } from "@/lib/format";
import { useNow } from "@/parts/RelativeTime";
import { Literal } from "@/reading/Literal";
import { mainArgument, senderName, TeamContext } from "@/views/conversation/rows";

/** What an agent does in a call, by its tool. */
const DOES: Record<string, string> = { read_file: "reads", write_file: "writes", edit_file: "edits", bash: "runs", web_search: "searches for", web_fetch: "reads", ask_human: "asks" };

/** Return the newest call if it has no result yet, and since when the agent does what it does. */
function activityOf(rows: readonly Row[]): { call: ToolCall | null; since: string | null } {
  const last = rows.at(-1);
  if (last?.kind !== "tools") return { call: null, since: last?.at ?? null };
  const call = last.calls.find((one) => one.endedAt === null) ?? null;
  return { call, since: call ? call.startedAt : (last.calls.at(-1)?.endedAt ?? last.at) };
}

export function LiveRow({ agentId, rows }: { agentId: string; rows: readonly Row[] }) {
  const info = useContext(TeamContext);
  const now = useNow();
  const { call, since } = activityOf(rows);
  const took = since === null ? 0 : now - Date.parse(since);
  return (
    <p data-live className="flex items-center gap-2 py-2 pr-4 pl-[60px] text-sm text-ink-2 max-md:px-3">
      <span className="pulse size-1.5 shrink-0 rounded-full bg-work-dot" aria-hidden />
      <span dir="ltr" className="literal min-w-0 truncate">
        {senderName(info, agentId)} {call ? (DOES[call.name] ?? `calls ${call.name}`) : "is thinking"}
        {call && DOES[call.name] && (
          <>
            {" "}
            <Literal text={mainArgument(call)} />
          </>
        )}
      </span>
      {took >= 1_000 && <span className="tabular shrink-0 text-xs text-ink-3">{duration(took)}</span>}
    </p>
  );
}
