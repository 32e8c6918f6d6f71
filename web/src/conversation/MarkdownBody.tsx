/** Markdown: what agents write, as elements. No HTML of theirs, no picture and no address without a click. */
import { Check, Copy, ExternalLink, ImageOff } from "lucide-react";
import { isValidElement, memo, type ReactElement, type ReactNode, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { copyText } from "@/lib/clipboard";
import { Button, Dialog } from "@/ui";
import { coloured } from "@/conversation/highlight";

export default memo(function MarkdownBody({ text, breaks }: { text: string; breaks: boolean }) {
  return (
    <div className={breaks ? "prose prose-breaks" : "prose"}>
      {blocks(text).map((block, at) => (
        <Block key={at} text={block} />
      ))}
    </div>
  );
});

const MOST_KEPT = 800;
const kept = new Map<string, ReactElement>();

/** While a reply comes in, only its last block is read again; and none when a row is scrolled back into sight. */
const Block = memo(function Block({ text }: { text: string }) {
  const known = kept.get(text);
  if (known) return known;
  // It has no hooks, so it may be called as the function it is.
  const made = ReactMarkdown({ children: text, remarkPlugins: PLUGINS, skipHtml: true, components, urlTransform: safeAddress });
  if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value!);
  kept.set(text, made);
  return made;
});
const PLUGINS = [remarkGfm];

/** Pieces that can be read alone: cut at empty lines outside fences, lists and notes kept whole. */
export function blocks(text: string): string[] {
  if (/^\[[^\]]+\]:/m.test(text)) return [text];
  const found: string[] = [];
  let fence: string | null = null;
  let now: string[] = [];
  const lines = text.split("\n");
  lines.forEach((line, at) => {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark && fence === null) fence = mark;
    else if (mark && fence !== null && mark.startsWith(fence)) fence = null;
    const next = lines[at + 1] ?? "";
    const isCut = line.trim() === "" && fence === null && !/^(\s{2,}|\s*([-*+]|\d+[.)])\s)/.test(next);
    if (isCut && now.length > 0) {
      found.push(now.join("\n"));
      now = [];
    } else now.push(line);
  });
  if (now.length > 0) found.push(now.join("\n"));
  return found;
}

function safeAddress(url: string): string {
  try {
    const { protocol } = new URL(url, "https://relative.invalid");
    return protocol === "http:" || protocol === "https:" || protocol === "mailto:" ? url : "";
  } catch {
    return "";
  }
}

const components: Components = {
  a: ({ href, children }) => <Leaving href={href ?? ""}>{children}</Leaving>,
  img: ({ src, alt }) => (
    <Leaving href={typeof src === "string" ? src : ""}>
      <ImageOff className="mr-1 inline size-3.5 align-[-2px]" aria-hidden />
      Picture{alt ? `: ${alt}` : ""}
    </Leaving>
  ),
  pre: ({ children }) => <Fence>{children}</Fence>,
  table: ({ children }) => (
    <div className="table-frame scroll" tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  input: ({ checked, type }) => (type === "checkbox" ? <input type="checkbox" checked={checked ?? false} disabled readOnly aria-label={checked ? "Done" : "Open"} /> : null),
};

/** Opens only after the person has seen where it leads. */
function Leaving({ href, children }: { href: string; children: ReactNode }) {
  const [asks, setAsks] = useState(false);
  let target: URL | null = null;
  try {
    target = new URL(href, location.origin);
  } catch {
    target = null;
  }
  if (!href || !target || href.startsWith("#")) return <span>{children}</span>;
  return (
    <>
      <button type="button" className="link" onClick={() => setAsks(true)} title={target.href}>
        {children}
      </button>
      {asks && (
        <Dialog open onOpenChange={setAsks} title={`Open ${target.host || target.protocol}?`} description="An agent wrote this address. Check it before you open it.">
          <p className="scroll max-h-40 rounded-sm bg-sunken p-3 font-mono text-xs break-all">{target.href}</p>
          <div className="mt-4 flex justify-end gap-2">
            <Button onClick={() => void copyText(target.href)}>
              <Copy className="size-4" /> Copy
            </Button>
            <a
              href={target.href}
              target="_blank"
              rel="noopener noreferrer"
              onClick={() => setAsks(false)}
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

function Fence({ children }: { children: ReactNode }) {
  const [copied, setCopied] = useState(false);
  const inner = isValidElement<{ className?: string; children?: ReactNode }>(children) ? children.props : {};
  const code = String(inner.children ?? "").replace(/\n$/, "");
  const language = /language-([\w+#-]+)/.exec(inner.className ?? "")?.[1] ?? "";
  return (
    <div className="fence group/code">
      <button
        type="button"
        aria-label={copied ? "Copied" : "Copy code"}
        onClick={() => void copyText(code).then(() => setCopied(true))}
        className="absolute top-1.5 right-1.5 flex size-7 items-center justify-center rounded-sm bg-surface text-ink-3 opacity-0 group-hover/code:opacity-100 hover:text-ink focus-visible:opacity-100 pointer-coarse:opacity-100"
      >
        {copied ? <Check className="size-3.5" /> : <Copy className="size-3.5" />}
      </button>
      <pre className="scroll" tabIndex={0}>
        <code>{coloured(code, language)}</code>
      </pre>
    </div>
  );
}
