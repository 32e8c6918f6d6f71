/** Preview: a file as people want to read it. What agents wrote is never run, and never HTML. */
import { Download, FileQuestion } from "lucide-react";
import { lazy, type ReactNode, Suspense, useMemo, useState } from "react";
import { size } from "@/lib/format";
import { Markdown } from "@/conversation/Markdown";
import { Button, EmptyState, Loading, Pills } from "@/ui";
import { nameOf } from "@/views/files/tree";
import type { Opened } from "@/views/files/fileQuery";

const Code = lazy(() => import("@/views/files/Code"));
const CsvTable = lazy(() => import("@/views/files/CsvTable"));

const LANGUAGES: Record<string, string> = {
  py: "python", js: "javascript", mjs: "javascript", jsx: "javascript", ts: "typescript", tsx: "typescript", sh: "bash", bash: "bash",
  json: "json", jsonl: "json", ndjson: "json", yaml: "yaml", yml: "yaml", toml: "yaml", html: "xml", htm: "xml", xml: "xml", svg: "xml", css: "css", sql: "sql",
};
const extension = (path: string): string => (/\.(\w+)$/.exec(nameOf(path))?.[1] ?? "").toLowerCase();

type Kind = "markdown" | "csv" | "json" | "code";
export function kindOf(path: string): Kind {
  const ext = extension(path);
  if (["md", "markdown", "mdx"].includes(ext)) return "markdown";
  if (["csv", "tsv"].includes(ext)) return "csv";
  return ext === "json" ? "json" : "code";
}

export function Preview({ opened, href }: { opened: Exclude<Opened, { kind: "folder" }>; href: string }) {
  if (opened.kind === "image") return <Picture key={opened.url} url={opened.url} name={nameOf(opened.path)} />;
  if (opened.kind === "binary") {
    return (
      <EmptyState
        icon={<FileQuestion />}
        title="This is not text"
        action={
          <a href={href} download={nameOf(opened.path)} className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover">
            <Download className="size-4" /> Download
          </a>
        }
      >
        {size(opened.bytes)} of binary data. Download the file to open it with another program.
      </EmptyState>
    );
  }
  if (opened.text === "") return <EmptyState title="This file is empty" />;
  return <Text key={opened.path} opened={opened} />;
}

function Text({ opened }: { opened: Extract<Opened, { kind: "text" }> }) {
  const kind = kindOf(opened.path);
  const [isSource, setSource] = useState(false);
  const code = (
    <Suspense fallback={<Loading what="Loading the code" />}>
      <Code text={opened.text} language={LANGUAGES[extension(opened.path)] ?? ""} />
    </Suspense>
  );
  let body: ReactNode = code;
  if (!isSource && kind === "markdown") body = <div className="reader px-6 py-5 max-md:px-4"><Markdown text={opened.text} /></div>;
  if (!isSource && kind === "csv") {
    body = (
      <Suspense fallback={<Loading what="Reading the table" />}>
        <CsvTable text={opened.text} separator={extension(opened.path) === "tsv" ? "\t" : undefined} />
      </Suspense>
    );
  }
  if (!isSource && kind === "json") body = <Json text={opened.text} otherwise={code} />;
  return (
    <>
      {kind !== "code" && (
        <div className="flex items-center px-4 pt-3">
          <Pills
            label="How to show it"
            value={isSource ? "source" : "shown"}
            onChange={(now) => setSource(now === "source")}
            options={[["shown", { markdown: "Preview", csv: "Table", json: "Tree", code: "" }[kind]], ["source", "Source"]]}
          />
        </div>
      )}
      {opened.isCut && <p className="mx-4 mt-3 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">Only the first {size(opened.bytes)} are shown. Download the file for all of it.</p>}
      {body}
    </>
  );
}

function Picture({ url, name }: { url: string; name: string }) {
  const [real, setReal] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  if (failed) return <EmptyState icon={<FileQuestion />} title="This picture cannot be shown">The browser cannot read this picture.</EmptyState>;
  return (
    <figure className="flex h-full flex-col items-center justify-center gap-2 p-6">
      <img
        src={url}
        alt={name}
        onLoad={(event) => setReal(`${event.currentTarget.naturalWidth} × ${event.currentTarget.naturalHeight}`)}
        onError={() => setFailed(true)}
        className="max-h-[calc(100%-32px)] max-w-full rounded-sm border border-line bg-[repeating-conic-gradient(var(--sunken)_0_25%,var(--surface)_0_50%)] bg-[length:16px_16px] object-contain"
      />
      <figcaption className="tabular text-xs text-ink-3">{real ?? "Loading the picture…"}</figcaption>
    </figure>
  );
}

function Json({ text, otherwise }: { text: string; otherwise: ReactNode }) {
  const value = useMemo(() => {
    try {
      return { ok: JSON.parse(text) as unknown };
    } catch (error) {
      return { wrong: error instanceof Error ? error.message : "" };
    }
  }, [text]);
  if (!("ok" in value)) {
    return (
      <>
        <p className="mx-4 mt-3 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">This is not valid JSON ({value.wrong}), so it is shown as it is.</p>
        {otherwise}
      </>
    );
  }
  return (
    <div className="p-4 font-mono text-xs leading-5">
      <Value value={value.ok} depth={0} />
    </div>
  );
}

const CHILDREN_AT_A_TIME = 100;
function Value({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const [isOpen, setOpen] = useState(depth < 2);
  const [most, setMost] = useState(CHILDREN_AT_A_TIME);
  const label = name === undefined ? null : <span className="text-ink-2">{name}: </span>;
  if (value === null || typeof value !== "object") {
    const look = typeof value === "string" ? "text-done" : typeof value === "number" ? "text-wait" : "text-work";
    return (
      <div className="break-words whitespace-pre-wrap">
        {label}
        <span className={look}>{JSON.stringify(value)}</span>
      </div>
    );
  }
  const entries = Array.isArray(value) ? value.map((one, at): [string, unknown] => [String(at), one]) : Object.entries(value);
  const what = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <div>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className="min-h-6 rounded-xs text-left hover:bg-hover">
        <span className="inline-block w-4 text-ink-3">{isOpen ? "▾" : "▸"}</span>
        {label}
        <span className="text-ink-3">{what}</span>
      </button>
      {isOpen && (
        <div className="ml-1.5 border-l border-line pl-3.5">
          {entries.slice(0, most).map(([key, one]) => (
            <Value key={key} name={key} value={one} depth={depth + 1} />
          ))}
          {entries.length > most && (
            <Button size="sm" look="plain" onClick={() => setMost(most * 4)}>
              {entries.length - most} more
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
