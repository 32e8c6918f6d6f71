/**
 * MarkdownBody: agents' Markdown as React elements.
 *
 * The text is untrusted: HTML in it is dropped, images are not loaded (a request would tell another server that the
 * message was read), and a link opens only after the person has seen its address.
 */
import { Link } from "@tanstack/react-router";
import { Check, Copy, ExternalLink, ImageOff } from "lucide-react";
import { isValidElement, memo, type ReactElement, type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { lazyChunk } from "@/live/chunks";
import { copyText } from "@/lib/clipboard";
import { Button, Dialog } from "@/ui";
import { formulaOf, markFormulas } from "@/reading/formulas";
import { highlightCode } from "@/reading/highlight";
import { HiddenCharacter } from "@/reading/Literal";
import { linkPaths, mayBePath, PathLink } from "@/reading/paths";
import { revealHidden } from "@/reading/visible";
import { ownPage } from "@/lib/screens";

// Loaded with the first formula and the first diagram.
const Formula = lazyChunk(() => import("@/reading/Formula"));
const Diagram = lazyChunk(() => import("@/reading/Diagram"));

/** Marks that one block may have to be parsed. The parser's time grows with the square of the marks of a block: a hostile one would block the page for minutes. */
const MAX_MARKS = 4_000;
/** Marks that are parsed before the page can react again. */
const MARKS_AT_ONCE = 4_000;
/** Marks of a text that is parsed as a whole. */
const MAX_MARKS_OF_WHOLE = 12_000;

/** Return how many characters of a text may mean something in Markdown. */
const countMarks = (text: string): number => text.match(/[!-/:-@[-`{-~\n\r\t]/g)?.length ?? 0;

/** Whether a text can be parsed as a whole without blocking the page. */
export const isQuick = (text: string): boolean => countMarks(text) <= MAX_MARKS_OF_WHOLE && splitBlocks(text).every((block) => countMarks(block) <= MAX_MARKS);

/** `isWhole`: a person decides by the text, so that nothing in it may be hidden; see `keepWhole`. */
export default memo(function MarkdownBody({ text, breaks, isWhole = false }: { text: string; breaks: boolean; isWhole?: boolean }) {
  const blocks = useMemo(() => splitBlocks(isWhole ? revealHidden(text) : markFormulas(text)).map((block) => ({ text: block, marks: countMarks(block) })), [text, isWhole]);
  const [budget, setBudget] = useState(MARKS_AT_ONCE);
  let left = budget;
  const shown = blocks.map((block) => {
    left -= block.marks > MAX_MARKS ? 0 : block.marks;
    return { ...block, isDue: left >= 0 };
  });
  const isDone = left >= 0;
  useEffect(() => {
    if (isDone) return;
    const next = setTimeout(() => setBudget((now) => now + MARKS_AT_ONCE));
    return () => clearTimeout(next);
  }, [isDone, budget]);
  return (
    <div className={breaks ? "prose prose-breaks" : "prose"}>
      {shown.map((block, at) => (block.marks > MAX_MARKS ? <CostlyBlock key={at} text={block.text} isWhole={isWhole} /> : block.isDue ? <Block key={at} text={block.text} isWhole={isWhole} /> : <PlainBlock key={at} text={block.text} />))}
    </div>
  );
});

const PlainBlock = ({ text }: { text: string }) => <p dir="auto" className="whitespace-pre-wrap">{text}</p>;

/** A block with so many marks that it is shown as it is written, until the person asks for more. */
function CostlyBlock({ text, isWhole }: { text: string; isWhole: boolean }) {
  const [isWanted, setWanted] = useState(false);
  if (isWanted) return <Block text={text} isWhole={isWhole} />;
  return (
    <>
      <p className="not-prose">
        <Button size="sm" onClick={() => setWanted(true)}>
          Format this part (the page may stand still for minutes)
        </Button>
      </p>
      <PlainBlock text={text} />
    </>
  );
}

const MAX_CACHED_BLOCKS = 800;
const blockCache = new Map<string, ReactElement>();

/** One block of Markdown, cached by its text. While a reply streams in, only its last block is parsed again; a row that scrolls back into view is not parsed at all. */
const Block = memo(function Block({ text, isWhole }: { text: string; isWhole: boolean }) {
  const key = isWhole ? `whole\n${text}` : text;
  const cached = blockCache.get(key);
  if (cached) return cached;
  // ReactMarkdown uses no hooks, so it may be called as a function, and its elements can be cached.
  const rendered = ReactMarkdown({
    children: text,
    remarkPlugins: isWhole ? WHOLE_PLUGINS : PLUGINS,
    rehypePlugins: isWhole ? WHOLE_HTML_PLUGINS : HTML_PLUGINS,
    skipHtml: !isWhole,
    components: isWhole ? WHOLE_COMPONENTS : components,
    urlTransform: safeUrl,
  });
  if (blockCache.size >= MAX_CACHED_BLOCKS) blockCache.delete(blockCache.keys().next().value!);
  blockCache.set(key, rendered);
  return rendered;
});
const PLUGINS = [remarkGfm, () => linkPaths];
export const HTML_PLUGINS = [() => setDirections];

/** What may stand for other characters or hide some. In a text that a person decides by, these stay as they are written. */
const NOT_WHOLE = [
  "autolink", "characterEscape", "characterReference", "definition", "gfmFootnoteCall", "gfmFootnoteDefinition", "gfmPotentialFootnoteCall", "hardBreakEscape", "htmlFlow", "htmlText",
  "labelEnd", "labelStartImage", "labelStartLink", "setextUnderline",
];

interface TextNode {
  type: string;
  value?: string;
  lang?: string | null;
  meta?: string | null;
  align?: (string | null)[];
  children?: TextNode[];
}

/** A plugin that lets Markdown hide nothing but its marks of emphasis, headings, lists, code and tables. */
function keepWhole(this: unknown): (tree: unknown) => void {
  const data = (this as { data: () => { micromarkExtensions?: unknown[] } }).data();
  (data.micromarkExtensions ??= []).push({ disable: { null: NOT_WHOLE } });
  return (tree) => showRest(tree as TextNode);
}

/** Show the words beside the mark of a block of code, and the cells of a row that is longer than its table. */
function showRest(node: TextNode): void {
  if (node.type === "table") {
    const width = Math.max(...node.children!.map((row) => row.children!.length));
    node.align = Array.from({ length: width }, (_, column) => node.align?.[column] ?? null);
  }
  node.children = node.children?.flatMap((child) => {
    const beside = child.type === "code" ? [child.lang, child.meta].filter(Boolean).join(" ") : "";
    return beside ? [{ type: "paragraph", children: [{ type: "text", value: beside }] }, child] : [child];
  });
  node.children?.forEach(showRest);
}

const CODE_POINT = /(\u27E8U\+[0-9A-F]{4,6}(?:×\d+)?\u27E9)/;

/** Mark the code points of hidden characters, as `Literal` does. Code shows them without the mark. */
function markHidden(node: HtmlNode): void {
  if (node.tagName === "code" || node.tagName === "mark" || !node.children) return;
  node.children = node.children.flatMap((child) => {
    if (child.type !== "text" || !CODE_POINT.test(child.value!)) return [child];
    return child.value!.split(CODE_POINT).map((value, at): HtmlNode => (at % 2 ? { type: "element", tagName: "mark", properties: { dataCode: value }, children: [{ type: "text", value }] } : { type: "text", value }));
  });
  node.children.forEach(markHidden);
}
const WHOLE_PLUGINS = [remarkGfm, keepWhole, () => linkPaths];
const WHOLE_HTML_PLUGINS = [() => markHidden];

interface HtmlNode {
  type?: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: HtmlNode[];
}
const BLOCKS = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "blockquote", "th", "td"]);

/** Let each block take its direction from its own words: a report may mix English and Arabic. Code stays left to right. */
function setDirections(node: HtmlNode): void {
  if (node.tagName && BLOCKS.has(node.tagName)) node.properties = { ...node.properties, dir: "auto" };
  node.children?.forEach(setDirections);
}

/** Split Markdown at empty lines into blocks that mean the same alone. Code fences and lists stay whole, and a text with link definitions is one block. */
export function splitBlocks(text: string): string[] {
  if (/^\[[^\]\n]+\]:/m.test(text)) return [text];
  const blocks: string[] = [];
  let fence: string | null = null;
  let current: string[] = [];
  const lines = text.split("\n");
  lines.forEach((line, at) => {
    const fenceMark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fenceMark && fence === null) fence = fenceMark;
    else if (fenceMark && fence !== null && fenceMark.startsWith(fence)) fence = null;
    const next = lines[at + 1] ?? "";
    const isBoundary = line.trim() === "" && fence === null && !/^(\s{2,}|\s*([-*+]|\d+[.)])\s)/.test(next);
    if (isBoundary && current.length > 0) {
      blocks.push(current.join("\n"));
      current = [];
    } else current.push(line);
  });
  if (current.length > 0) blocks.push(current.join("\n"));
  return blocks;
}

/** Return the URL if its scheme is http, https or mailto, otherwise an empty string: `javascript:` and `data:` URLs could run code. */
export function safeUrl(url: string): string {
  try {
    const { protocol } = new URL(url, "https://relative.invalid");
    return protocol === "http:" || protocol === "https:" || protocol === "mailto:" ? url : "";
  } catch {
    return "";
  }
}

export const components: Components = {
  a: ({ href, children }) => (mayBePath(decoded(href ?? "")) ? <PathLink text={decoded(href ?? "")}>{children}</PathLink> : <ConfirmedLink href={href ?? ""}>{children}</ConfirmedLink>),
  code: ({ className, children }) => {
    const text = typeof children === "string" && !className ? children : "";
    const formula = formulaOf(text);
    if (formula) {
      return (
        <Suspense fallback={<code dir="ltr">{formula.tex}</code>}>
          <Formula {...formula} />
        </Suspense>
      );
    }
    const code = <code className={className}>{children}</code>;
    return mayBePath(text) ? <PathLink text={text}>{code}</PathLink> : code;
  },
  img: ({ src, alt }) => (
    <ConfirmedLink href={typeof src === "string" ? src : ""}>
      <ImageOff className="mr-1 inline size-3.5 align-[-2px]" aria-hidden />
      Picture{alt ? `: ${alt}` : ""}
    </ConfirmedLink>
  ),
  pre: ({ children }) => <Fence>{children}</Fence>,
  table: ({ children }) => (
    <div className="table-frame scroll" tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  input: ({ checked, type }) => (type === "checkbox" ? <input type="checkbox" checked={checked ?? false} disabled readOnly aria-label={checked ? "Done" : "Open"} /> : null),
};

const WHOLE_COMPONENTS: Components = {
  ...components,
  // A diagram and a formula show less than their source.
  code: ({ className, children }) => <code className={className}>{children}</code>,
  mark: ({ children }) => <HiddenCharacter code={String(children)} />,
  pre: ({ children }) => <CodeBlock code={codeOf(children).code} language="" />,
};

/** A link that opens only after a dialog has shown its address. The text of a link may name another address. */
function ConfirmedLink({ href, children }: { href: string; children: ReactNode }) {
  const [isConfirming, setIsConfirming] = useState(false);
  let target: URL | null = null;
  try {
    target = new URL(href, location.origin);
  } catch {
    target = null;
  }
  if (!href || !target || href.startsWith("#")) return <span>{children}</span>;
  const page = ownPage(href);
  if (page) {
    return (
      <Link to={page as "/"} className="link">
        {children}
      </Link>
    );
  }
  return (
    <>
      <button type="button" className="link" onClick={() => setIsConfirming(true)} title={target.href}>
        {children}
      </button>
      {isConfirming && (
        <Dialog open onOpenChange={setIsConfirming} title={`Open ${target.host || target.protocol}?`} description="An agent wrote this address. Check it before you open it.">
          <p className="scroll max-h-40 rounded-sm bg-sunken p-3 font-mono text-xs break-all">{target.href}</p>
          <div className="mt-4 flex justify-end gap-2">
            <Button onClick={() => void copyText(target.href)}>
              <Copy className="size-4" /> Copy
            </Button>
            <a
              href={target.href}
              target="_blank"
              rel="noopener noreferrer"
              onClick={() => setIsConfirming(false)}
              className="inline-flex h-8 items-center gap-1.5 rounded-sm bg-ink px-3 text-sm font-medium text-paper"
            >
              <ExternalLink className="size-4" /> Open
            </a>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** Return an address as a person reads it; Markdown encodes spaces and letters. */
function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}

function codeOf(children: ReactNode): { code: string; language: string } {
  const inner = isValidElement<{ className?: string; children?: ReactNode }>(children) ? children.props : {};
  return { code: String(inner.children ?? "").replace(/\n$/, ""), language: /language-([\w+#-]+)/.exec(inner.className ?? "")?.[1] ?? "" };
}

/** A fenced block: code, a diagram, or a formula. */
function Fence({ children }: { children: ReactNode }) {
  const { code, language } = codeOf(children);
  const block = <CodeBlock code={code} language={language} />;
  if (language === "mermaid") return <SeenDiagram source={code} fallback={block} />;
  if (language === "math" || language === "latex-math") {
    return (
      <Suspense fallback={block}>
        <Formula tex={code} isOnItsOwn />
      </Suspense>
    );
  }
  return block;
}

/** A diagram whose code is loaded once it is on screen. */
function SeenDiagram({ source, fallback }: { source: string; fallback: ReactNode }) {
  const frame = useRef<HTMLDivElement>(null);
  const [isSeen, setIsSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setIsSeen(true));
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={frame}>
      <Suspense fallback={fallback}>{isSeen ? <Diagram source={source} fallback={fallback} /> : fallback}</Suspense>
    </div>
  );
}

function CodeBlock({ code, language }: { code: string; language: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <div className="fence group/code">
      <button
        type="button"
        aria-label={copied ? "Copied" : "Copy code"}
        onClick={() => void copyText(code).then(() => setCopied(true))}
        className="absolute top-1.5 right-1.5 flex size-7 items-center justify-center rounded-sm bg-surface text-ink-3 opacity-0 group-hover/code:opacity-100 hover:text-ink focus-visible:opacity-100 pointer-coarse:size-11 pointer-coarse:bg-transparent pointer-coarse:opacity-100"
      >
        {copied ? <Check className="size-3.5" /> : <Copy className="size-3.5" />}
      </button>
      <pre dir="ltr" className="scroll" tabIndex={0}>
        <code>{highlightCode(code, language)}</code>
      </pre>
    </div>
  );
}
