/** Preview: a file as Markdown, table, JSON tree, image or source. Agents wrote the files, so nothing in them is executed or inserted as HTML. */
import { Download, FileQuestion } from "lucide-react";
import { type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { withQuery } from "@/api/session";
import { searchedWords, showWords } from "@/reading/foundWords";
import { fileSize } from "@/lib/format";
import { isUploaded } from "@/lib/sources";
import { lazyChunk } from "@/live/chunks";
import { Markdown } from "@/reading/Markdown";
import { Button, EmptyState, Loading, Pills } from "@/ui";
import { extension, LANGUAGES, previewKind } from "@/views/files/previewKind";
import { isLarge } from "@/views/files/lines";
import { baseName } from "@/views/files/tree";
import type { FileContent } from "@/views/files/fileQuery";
import { Sources, UploadedFile } from "@/parts/Sources";

const Code = lazyChunk(() => import("@/views/files/Code"));
const LargeText = lazyChunk(() => import("@/views/files/LargeText"));
const CsvTable = lazyChunk(() => import("@/views/files/CsvTable"));

const MAX_SVG = 1_000_000;
/** Longer Markdown is shown as its source: to parse it would block the page for seconds. */
const MAX_MARKDOWN = 300_000;
type File = Exclude<FileContent, { kind: "folder" }>;

/** A file with a line above it that says who else wrote its words. */
export function Preview({ file, href }: { file: File; href: string }) {
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => showWords(() => content.current, searchedWords()), [file.path]);
  return (
    <div className="flex h-full flex-col">
      {file.sources.length > 0 && (
        <div className="shrink-0 border-b border-line px-4 pb-2">
          {isUploaded(file.path) && <UploadedFile />}
          <Sources of={isUploaded(file.path) ? file.sources.filter((source) => !source.startsWith("file:")) : file.sources} />
        </div>
      )}
      <div ref={content} className="min-h-0 flex-1">
        <Content file={file} href={href} />
      </div>
    </div>
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
  return <TextPreview key={file.path} file={file} href={href} />;
}

function TextPreview({ file, href }: { file: Extract<FileContent, { kind: "text" }>; href: string }) {
  const kind = previewKind(file.path);
  const isTooLong = (kind === "markdown" && file.text.length > MAX_MARKDOWN) || (kind === "svg" && file.text.length > MAX_SVG);
  const [isSource, setSource] = useState(isTooLong);
  const large = useMemo(() => isLarge(file.text), [file.text]);
  const code = (
    <Suspense fallback={<Loading label="Loading the code" />}>{large ? <LargeText text={file.text} /> : <Code text={file.text} language={LANGUAGES[extension(file.path)] ?? ""} />}</Suspense>
  );
  let body: ReactNode = code;
  if (!isSource && kind === "markdown") body = <div className="reader px-6 py-5 max-md:px-4"><Markdown text={file.text} isFile /></div>;
  if (!isSource && kind === "csv") {
    body = (
      <Suspense fallback={<Loading label="Reading the table" />}>
        <CsvTable text={file.text} separator={extension(file.path) === "tsv" ? "\t" : undefined} />
      </Suspense>
    );
  }
  if (!isSource && kind === "svg") body = <ImagePreview url={withQuery(href, { picture: "true", v: file.hash })} name={baseName(file.path)} fallback={code} />;
  if (!isSource && kind === "json") body = <JsonPreview text={file.text} fallback={code} />;
  return (
    <div className="flex h-full flex-col">
      {kind !== "code" && !isTooLong && (
        <div className="flex shrink-0 items-center px-4 pt-3">
          <Pills
            label="How to show it"
            value={isSource ? "source" : "shown"}
            onChange={(now) => setSource(now === "source")}
            options={[["shown", { markdown: "Preview", csv: "Table", json: "Tree", svg: "Picture", code: "" }[kind]], ["source", "Source"]]}
          />
        </div>
      )}
      {isTooLong && <Note>This file is too large for a preview, so its source is shown.</Note>}
      {file.isTruncated && <Note>Only the first {fileSize(file.bytes)} are shown. Download the file for all of it.</Note>}
      {file.isLossy && <Note>Some bytes of this file are not UTF-8 and are shown as �. It cannot be edited here, because saving would lose them. Download it to change it.</Note>}
      <div className="min-h-0 flex-1">{body}</div>
    </div>
  );
}

const Note = ({ children }: { children: ReactNode }) => <p className="mx-4 mt-3 shrink-0 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">{children}</p>;

function ImagePreview({ url, name, fallback }: { url: string; name: string; fallback?: ReactNode }) {
  const [dimensions, setDimensions] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  if (failed && fallback) return fallback;
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
        <Note>This is not valid JSON ({value.problem.slice(0, 200)}), so its source is shown.</Note>
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

const CHARACTERS_AT_FIRST = 2_000;
/** A long value: its beginning, and a button that shows ten times as much. */
function ClippedText({ text }: { text: string }) {
  const [limit, setLimit] = useState(CHARACTERS_AT_FIRST);
  if (text.length <= limit) return text;
  return (
    <>
      {text.slice(0, limit)}…{" "}
      <Button size="sm" variant="ghost" onClick={() => setLimit(limit * 10)}>
        {(text.length - limit).toLocaleString()} more characters
      </Button>
    </>
  );
}

const CHILDREN_PER_PAGE = 100;
function JsonValue({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const [isOpen, setOpen] = useState(depth < 2);
  const [limit, setLimit] = useState(CHILDREN_PER_PAGE);
  const label = name === undefined ? null : <span dir="auto" className="text-ink-2">{name.slice(0, 300)}: </span>;
  if (value === null || typeof value !== "object") {
    const style = typeof value === "string" ? "text-done" : typeof value === "number" ? "text-wait" : "text-work";
    return (
      <div className="break-words whitespace-pre-wrap">
        {label}
        <span dir="auto" className={style}>
          <ClippedText text={JSON.stringify(value)} />
        </span>
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
        <span dir="auto" className="text-ink-3">{summary}</span>
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
