/** ResultCard: one delivered result: who, when, for which work, its text, its files and its changes. */
import { Link } from "@tanstack/react-router";
import { FileDiff } from "lucide-react";
import { useRef, useState } from "react";
import { flushSync } from "react-dom";
import { api, type Schemas, unwrap } from "@/api/client";
import { Literal } from "@/reading/Literal";
import { Markdown } from "@/reading/Markdown";
import { cx } from "@/lib/cx";
import { capitalize, fullTime, plural } from "@/lib/format";
import { Button } from "@/ui";
import { screenHref } from "@/lib/screens";
import { baseName } from "@/views/files/tree";
import { FileRow, PublishedFiles } from "@/views/results/PublishedFiles";
import type { Result } from "@/views/results/resultsQuery";
import { ShareButton } from "@/views/results/ShareButton";
import { Doubts } from "@/parts/Doubts";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { SaveText, type Written } from "@/parts/SaveText";
import { Sources } from "@/parts/Sources";
import { displayStatusOf, StatusChip } from "@/parts/taskStatus";

const MINUTE = 60_000;
const LONG_TEXT = 420;
const KINDS: Record<Schemas["FolderChangeView"]["kind"], string> = { made: "Made", changed: "Changed", removed: "Removed" };
const linkStyle = "underline decoration-line-2 underline-offset-2 hover:decoration-ink";

interface CardProps {
  team: string;
  result: Result;
  /** The path that the preview shows. */
  openPath: string;
  /** The query of the screen's address, which links keep. */
  suffix: string;
}

export function ResultCard({ team, result, openPath, suffix }: CardProps) {
  const boardHref = screenHref(team, "board", "", `?node=${result.node_id}`);
  const card = useRef<HTMLLIElement>(null);
  // Long texts come without their end.
  const [whole, setWhole] = useState(result.is_whole ? result.text : null);
  const load = async (): Promise<Written> => {
    const text = whole ?? (await unwrap(api.GET("/api/nodes/{node}", { params: { path: { node: result.node_id } } }))).result ?? result.text;
    flushSync(() => setWhole(text));
    return { title: result.title, byline: `${capitalize(result.agent ?? "an agent")} · ${fullTime(result.at)}`, text, doubts: result.doubts, sources: result.sources };
  };
  return (
    <li ref={card} className="rounded-md border border-line bg-surface p-4 max-md:p-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="min-w-0 flex-1 basis-44 text-sm font-semibold">
          <Link to={boardHref as "/"} dir="auto" className="break-words hover:underline">
            {result.title}
          </Link>
        </h2>
        {result.kind === "result" && (result.status !== "completed" || result.doubts.length > 0) && <StatusChip status={displayStatusOf({ status: result.status, doubts: result.doubts }, false)} />}
        {result.text && <SaveText what={load} printed={() => card.current} />}
        {result.text && result.kind === "result" && <ShareButton node={result.node_id} title={result.title} />}
      </div>
      <Byline team={team} result={result} />
      {result.text && <ResultText text={whole ?? result.text} isWhole={whole !== null} boardHref={boardHref} />}
      <Doubts of={result.doubts} team={team} />
      <Sources of={result.sources} />
      <PublishedFiles team={team} node={result.node_id} files={result.files} count={result.file_count} openPath={openPath} suffix={suffix} />
      {result.changes.length > 0 && (
        <ul className="mt-3 divide-y divide-line rounded-sm border border-line">
          {result.changes.map((change) => (
            <ChangeRow key={change.id} team={team} change={change} isOpen={openPath === `change/${change.id}`} suffix={suffix} />
          ))}
          {result.change_count > result.changes.length && <li className="px-3 py-1.5 text-xs text-ink-3">and {result.change_count - result.changes.length} earlier ones</li>}
        </ul>
      )}
    </li>
  );
}

function Byline({ team, result }: { team: string; result: Result }) {
  const now = useNow(MINUTE);
  return (
    <p className="mt-0.5 flex flex-wrap items-center gap-x-1.5 text-xs text-ink-3">
      {result.agent_id && (
        <Link to="/t/$team/a/$agent" params={{ team, agent: result.agent_id }} dir="auto" className={cx(linkStyle, "inline-flex min-h-6 items-center")}>
          {capitalize(result.agent ?? "an agent")}
        </Link>
      )}
      <span>{result.kind === "changes" ? `changed ${plural(result.change_count, "file")}` : result.file_count > 0 ? `delivered ${plural(result.file_count, "file")}` : "reported"}</span>
      <RelativeTime at={result.at} now={now} />
      {result.parent_id && (
        <span className="min-w-0">
          for{" "}
          <Link to={screenHref(team, "board", "", `?node=${result.parent_id}`) as "/"} dir="auto" className={cx(linkStyle, "inline-flex min-h-6 items-center break-words")}>
            {result.parent_title || "larger work"}
          </Link>
        </span>
      )}
    </p>
  );
}

function ResultText({ text, isWhole, boardHref }: { text: string; isWhole: boolean; boardHref: string }) {
  const isLong = text.length > LONG_TEXT || text.split("\n").length > 8;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <div dir="auto" className={cx("mt-2 text-sm", isLong && !isOpen && "max-h-[132px] overflow-hidden [mask-image:linear-gradient(#000_70%,transparent)]")}>
        <Markdown text={text} />
      </div>
      {(isLong || !isWhole) && (
        <p className="mt-1 flex items-center gap-3">
          {isLong && (
            <Button size="sm" variant="ghost" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
              {isOpen ? "Show less" : "Show more"}
            </Button>
          )}
          {!isWhole && (
            <Link to={boardHref as "/"} className={cx(linkStyle, "inline-flex min-h-6 items-center text-xs text-ink-2")}>
              Open the whole result
            </Link>
          )}
        </p>
      )}
    </>
  );
}

/** A file in the list of all files, with the work that it comes from. */
export const FileCard = ({ team, file, result, openPath, suffix }: CardProps & { file: Schemas["FileView"] }) => (
  <FileRow team={team} file={file} name={baseName(file.path)} isOpen={file.path === openPath} suffix={suffix} note={`${capitalize(result.agent ?? "an agent")} · ${result.title}`} />
);

function ChangeRow({ team, change, isOpen, suffix }: { team: string; change: Schemas["FolderChangeView"]; isOpen: boolean; suffix: string }) {
  return (
    <li className={cx(isOpen && "bg-press")}>
      <Link to={(screenHref(team, "results", `change/${change.id}`) + suffix) as "/"} aria-current={isOpen ? "true" : undefined} className="flex min-h-9 items-center gap-2 px-3 text-sm hover:bg-hover pointer-coarse:min-h-11">
        <FileDiff className="size-4 shrink-0 text-ink-3" aria-hidden />
        <span className="shrink-0 text-xs text-ink-2">{KINDS[change.kind]}</span>
        <code dir="ltr" className="min-w-0 flex-1 truncate text-xs">
          <Literal text={change.path} />
        </code>
        {change.undone_at && <span className="text-xs text-ink-3">undone</span>}
      </Link>
    </li>
  );
}
