/**
 * Diagram: a Mermaid text as a picture.
 *
 * Mermaid itself cannot run here: it sets innerHTML, which the Content-Security-Policy refuses. beautiful-mermaid returns
 * SVG as text and needs no document. The SVG is shown by an <img> element, where no script of it runs and nothing is loaded.
 */
import { cx } from "@/lib/cx";
import { renderMermaid } from "beautiful-mermaid";
import { Code2, Workflow } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { IconButton } from "@/ui";

/** The layout of a larger diagram would block the page. */
const MAX_CHARACTERS = 12_000;
const MAX_LINES = 250;

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Words in a label, in which a semicolon ends nothing; and a semicolon that ends a statement. */
const LABEL_OR_END = /"[^"]*"|\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|\|[^|]*\||;[ \t]*/g;
const GRAPH = /^\s*((?:graph|flowchart)[ \t]+(?:TD|TB|BT|RL|LR))[ \t]*;?[ \t]*/;

/** Return a diagram with a line for each of its statements: the library reads no others, and agents write short diagrams in one line. */
export function inLines(source: string): string {
  if (source.trim().includes("\n") && !GRAPH.test(source)) return source;
  const split = source.trim().replace(LABEL_OR_END, (part) => (part.startsWith(";") ? "\n" : part));
  return split.replace(GRAPH, "$1\n").replace(/\n\s*\n/g, "\n").trimEnd();
}

async function draw(given: string): Promise<string> {
  const source = inLines(given);
  if (source.length > MAX_CHARACTERS || source.split("\n").length > MAX_LINES) throw new Error("too large");
  const svg = await renderMermaid(source, {
    bg: color("--surface"), fg: color("--ink"), line: color("--ink-3"), accent: color("--ink-2"), muted: color("--ink-2"),
    surface: color("--sunken"), border: color("--line-2"), font: "system-ui", padding: 16, transparent: true,
  });
  // A picture loads nothing; the address of a font is taken out all the same.
  return URL.createObjectURL(new Blob([svg.replace(/@import[^)]*\)[^;]*;/g, "")], { type: "image/svg+xml" }));
}

/** Changes when the page gets other colours. */
function useTheme(): string {
  const read = (): string => color("--ink");
  const [ink, setInk] = useState(read);
  useEffect(() => {
    const update = (): void => setInk(read());
    const observer = new MutationObserver(update);
    observer.observe(document.documentElement, { attributes: true });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", update);
    return () => {
      observer.disconnect();
      system.removeEventListener("change", update);
    };
  }, []);
  return ink;
}

export default function Diagram({ source, fallback }: { source: string; fallback: ReactNode }) {
  const theme = useTheme();
  const [url, setUrl] = useState<string | null>(null);
  const [hasFailed, setHasFailed] = useState(false);
  const [isSource, setIsSource] = useState(false);
  useEffect(() => {
    let isCurrent = true;
    let made: string | null = null;
    draw(source).then(
      (drawn) => {
        made = drawn;
        if (!isCurrent) return URL.revokeObjectURL(drawn);
        setUrl(drawn);
        setHasFailed(false);
      },
      () => isCurrent && setHasFailed(true),
    );
    return () => {
      isCurrent = false;
      if (made) URL.revokeObjectURL(made);
    };
  }, [source, theme]);
  if (hasFailed) {
    return (
      <>
        {fallback}
        <p className="-mt-1 mb-2 text-xs text-ink-3">This diagram cannot be drawn here, so its source is shown.</p>
      </>
    );
  }
  const name = source.trim().split("\n")[0]!.slice(0, 80);
  return (
    <figure className="fence my-2">
      {isSource || !url ? (
        fallback
      ) : (
        <div className="scroll rounded-md border border-line bg-surface p-2" tabIndex={0} role="group" aria-label="Diagram">
          <img src={url} alt={`Diagram: ${name}. Show its source to read it as text.`} className="mx-auto max-w-full" onError={() => setHasFailed(true)} />
        </div>
      )}
      {url && (
        <IconButton label={isSource ? "Show the diagram" : "Show the source"} className={cx("absolute top-1.5 size-7 bg-surface pointer-coarse:size-10", isSource ? "right-10" : "right-1.5")} onClick={() => setIsSource(!isSource)}>
          {isSource ? <Workflow className="size-3.5" /> : <Code2 className="size-3.5" />}
        </IconButton>
      )}
    </figure>
  );
}
