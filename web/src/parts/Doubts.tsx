/** Doubts: what could not be confirmed of a result, in one line below it that opens to a sentence for each point. */
import { Link } from "@tanstack/react-router";
import { ChevronRight, CircleHelp } from "lucide-react";
import type { Schemas } from "@/api/client";
import { pointsText } from "@/lib/endings";
import { capitalize } from "@/lib/format";
import { screenHref } from "@/lib/screens";
import { Literal } from "@/reading/Literal";

export function Doubts({ of: doubts, team }: { of: readonly Schemas["Doubt"][]; team: string }) {
  if (doubts.length === 0) return null;
  return (
    <details className="group/doubts mt-3 text-sm">
      <summary className="flex min-h-6 w-fit max-w-full cursor-pointer list-none items-center gap-1.5 rounded-sm text-wait hover:underline pointer-coarse:min-h-11">
        <CircleHelp className="size-4 shrink-0" aria-hidden />
        {pointsText(doubts.length)}
        <ChevronRight className="size-3.5 shrink-0 transition-transform group-open/doubts:rotate-90" aria-hidden />
      </summary>
      <ul className="mt-1 ml-5 list-disc space-y-1 pl-1 text-ink-2 marker:text-ink-3">
        {doubts.map((doubt, at) => (
          <li key={at} dir="auto" className="break-words">
            <Point doubt={doubt} team={team} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** One point. About other work, its sentence begins with the title, which leads to that work. */
function Point({ doubt, team }: { doubt: Schemas["Doubt"]; team: string }) {
  if (!doubt.node_id) return <Literal text={capitalize(doubt.words)} />;
  return (
    <>
      <Link to={screenHref(team, "board", "", `?node=${doubt.node_id}`) as "/"} className="font-medium text-ink underline decoration-line-2 underline-offset-2 hover:decoration-ink">
        <bdi>
          <Literal text={doubt.title || "A task"} />
        </bdi>
      </Link>{" "}
      <Literal text={doubt.words} />
    </>
  );
}
