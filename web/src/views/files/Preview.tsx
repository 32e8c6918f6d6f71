/** Preview: a file as Markdown, table, JSON tree, image or source. Agents wrote the files, so nothing in them is executed or inserted as HTML. */
import { Download, FileQuestion } from "lucide-react";
import { lazy, type ReactNode, Suspense, useMemo, useState } from "react";
import { fileSize } from "@/lib/format";
import { Markdown } from "@/conversation/Markdown";
import { Button, EmptyState, Loading, Pills } from "@/ui";
import { baseName } from "@/views/files/tree";
import type { FileContent } from "@/views/files/fileQuery";
import { Sources } from "@/views/shared/Sources";

const Code = lazy(() => import("@/views/files/Code"));
const CsvTable = lazy(() => import("@/views/files/CsvTable"));

const LANGUAGES: Record<string, string> = {
  py: "python", js: "javascript", mjs: "javascript", jsx: "javascript", ts: "typescript", tsx: "typescript", sh: "bash", bash: "bash",
  json: "json", jsonl: "json", ndjson: "json", yaml: "yaml", yml: "yaml", toml: "yaml", html: "xml", htm: "xml", xml: "xml", svg: "xml", css: "css", sql: "sql",
};
const extension = (path: string): string => (/\.(\w+)$/.exec(baseName(path))?.[1] ?? "").toLowerCase();

type PreviewKind = "markdown" | "csv" | "json" | "code";
export function previewKind(path: string): PreviewKind {
  const ext = extension(path);
  if (["md", "markdown", "mdx"].includes(ext)) return "markdown";
  if (["csv", "tsv"].includes(ext)) return "csv";
  return ext === "json" ? "json" : "code";
}

type File = Exclude<FileContent, { kind: "folder" }>;

/** A file with a line above it that says who else wrote its words. */
export function Preview({ file, href }: { file: File; href: string }) {
  return (
    <>
      {file.sources.length > 0 && (
        <div className="border-b border-line px-4 pb-2">
          <Sources of={file.sources} />
        </div>
      )}
      <Content file={file} href={href} />
    </>
  );
}

function Content({ file, href }: { file: File; href: string }) {
  if (file.kind === "image") return <ImagePreview key={file.url} url={file.url} name={baseName(file.path)} />;
  if (file.kind === "binary") {
    return (
      <EmptyState
        icon={<FileQuestion />}
        title="This file is not text"
        action={
          <a href={href} download={baseName(file.path)} className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover">
            <Download className="size-4" /> Download
          </a>
        }
      >
        {fileSize(file.bytes)} of binary data. Download the file to open it with another program.
      </EmptyState>
    );
  }
  if (file.text === "") return <EmptyState title="This file is empty" />;
  return <TextPreview key={file.path} file={file} />;
}

function TextPreview({ file }: { file: Extract<FileContent, { kind: "text" }> }) {
  const kind = previewKind(file.path);
  const [isSource, setSource] = useState(false);
  const code = (
    <Suspense fallback={<Loading label="Loading the code" />}>
      <Code text={file.text} language={LANGUAGES[extension(file.path)] ?? ""} />
    </Suspense>
  );
  let body: ReactNode = code;
  if (!isSource && kind === "markdown") body = <div className="reader px-6 py-5 max-md:px-4"><Markdown text={file.text} /></div>;
  if (!isSource && kind === "csv") {
    body = (
      <Suspense fallback={<Loading label="Reading the table" />}>
        <CsvTable text={file.text} separator={extension(file.path) === "tsv" ? "\t" : undefined} />
      </Suspense>
    );
  }
  if (!isSource && kind === "json") body = <JsonPreview text={file.text} fallback={code} />;
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
      {file.isTruncated && <p className="mx-4 mt-3 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">Only the first {fileSize(file.bytes)} are shown. Download the file for all of it.</p>}
      {body}
    </>
  );
}

function ImagePreview({ url, name }: { url: string; name: string }) {
  const [dimensions, setDimensions] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  if (failed) return <EmptyState icon={<FileQuestion />} title="This picture cannot be shown">The browser cannot read this picture.</EmptyState>;
  return (
    <figure className="flex h-full flex-col items-center justify-center gap-2 p-6">
      <img
        src={url}
        alt={name}
        onLoad={(event) => setDimensions(`${event.currentTarget.naturalWidth} × ${event.currentTarget.naturalHeight}`)}
        onError={() => setFailed(true)}
        className="max-h-[calc(100%-32px)] max-w-full rounded-sm border border-line bg-[repeating-conic-gradient(var(--sunken)_0_25%,var(--surface)_0_50%)] bg-[length:16px_16px] object-contain"
      />
      <figcaption className="tabular text-xs text-ink-3">{dimensions ?? "Loading the picture…"}</figcaption>
    </figure>
  );
}

function JsonPreview({ text, fallback }: { text: string; fallback: ReactNode }) {
  const value = useMemo(() => {
    try {
      return { parsed: JSON.parse(text) as unknown };
    } catch (error) {
      return { problem: error instanceof Error ? error.message : "" };
    }
  }, [text]);
  if (!("parsed" in value)) {
    return (
      <>
        <p className="mx-4 mt-3 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">This is not valid JSON ({value.problem}), so its source is shown.</p>
        {fallback}
      </>
    );
  }
  return (
    <div className="p-4 font-mono text-xs leading-5">
      <JsonValue value={value.parsed} depth={0} />
    </div>
  );
}

const CHILDREN_PER_PAGE = 100;
function JsonValue({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const [isOpen, setOpen] = useState(depth < 2);
  const [limit, setLimit] = useState(CHILDREN_PER_PAGE);
  const label = name === undefined ? null : <span className="text-ink-2">{name}: </span>;
  if (value === null || typeof value !== "object") {
    const style = typeof value === "string" ? "text-done" : typeof value === "number" ? "text-wait" : "text-work";
    return (
      <div className="break-words whitespace-pre-wrap">
        {label}
        <span className={style}>{JSON.stringify(value)}</span>
      </div>
    );
  }
  const entries = Array.isArray(value) ? value.map((one, at): [string, unknown] => [String(at), one]) : Object.entries(value);
  const summary = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <div>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className="min-h-6 rounded-xs text-left hover:bg-hover">
        <span className="inline-block w-4 text-ink-3">{isOpen ? "▾" : "▸"}</span>
        {label}
        <span className="text-ink-3">{summary}</span>
      </button>
      {isOpen && (
        <div className="ml-1.5 border-l border-line pl-3.5">
          {entries.slice(0, limit).map(([key, one]) => (
            <JsonValue key={key} name={key} value={one} depth={depth + 1} />
          ))}
          {entries.length > limit && (
            <Button size="sm" variant="ghost" onClick={() => setLimit(limit * 4)}>
              {entries.length - limit} more
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
