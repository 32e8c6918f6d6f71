/** Report: a research report whose marks show the quotations of their sources on hover, focus and tap. */
import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleHelp } from "lucide-react";
import { Tooltip } from "radix-ui";
import { memo, useMemo, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { Markdown } from "@/reading/Markdown";
import { components as plainComponents, HTML_PLUGINS, isQuick, safeUrl } from "@/reading/MarkdownBody";
import { Literal } from "@/reading/Literal";
import { type Citation, citationAt, classLabel, firstMark, markCitations, type Research } from "@/views/research/citations";
import ResearchCard from "@/views/research/ResearchCard";
import { researchQuery } from "@/views/research/researchQuery";

/** `isPart`: the text is a part of the report, such as its summary in the conversation. */
export default function Report({ node, text, isPart = false }: { node: string; text: string; isPart?: boolean }) {
  const { data } = useQuery(researchQuery(node));
  if (!data) return <Markdown text={text} />;
  const cited = data.sources.length > 0 && isQuick(text) ? <CitedText text={text} research={data} isPart={isPart} /> : <Markdown text={text} />;
  if (isPart) return cited;
  return (
    <>
      {cited}
      <details className="mt-6 border-t border-line pt-3 text-sm">
        <summary className="min-h-6 cursor-pointer font-medium pointer-coarse:min-h-10">Plan, pages and all quotations</summary>
        <ResearchCard node={node} />
      </details>
    </>
  );
}

const CitedText = memo(function CitedText({ text, research, isPart }: { text: string; research: Research; isPart: boolean }) {
  const { plugins, components } = useMemo(() => {
    const known = new Set(research.sources.map((one) => one.number));
    const Plain = plainComponents.a as React.ComponentType<{ href?: string; children?: React.ReactNode }>;
    const own: Components = {
      ...plainComponents,
      a: ({ href, children }) => {
        const citation = citationAt(href ?? "", research);
        return citation ? <Mark citation={citation} /> : <Plain href={href}>{children}</Plain>;
      },
    };
    // Of a text that is not found in the report, a mark shows all quotations of its source.
    const first = isPart ? firstMark(text, research) : 0;
    return { plugins: [remarkGfm, markCitations(known, first < 0 ? research.citations.length : first)], components: own };
  }, [research, text, isPart]);
  return (
    <Tooltip.Provider>
    <div className="prose">
      <ReactMarkdown remarkPlugins={plugins} rehypePlugins={HTML_PLUGINS} skipHtml components={components} urlTransform={(url) => (url.startsWith("#source-") ? url : safeUrl(url))}>
        {text}
      </ReactMarkdown>
    </div>
    </Tooltip.Provider>
  );
});

/** The number of a source. It opens by hover and focus, and stays open after a click or a tap until the next one. */
function Mark({ citation }: { citation: Citation }) {
  const [isOpen, setIsOpen] = useState(false);
  const { source, evidence, isConfirmed } = citation;
  return (
    <Tooltip.Root open={isOpen} onOpenChange={setIsOpen} delayDuration={150}>
      <Tooltip.Trigger asChild>
        <button
          type="button"
          className="cite"
          aria-label={`Source ${source.number}: ${source.title || source.site}`}
          // A tooltip closes when it is pressed; this one opens, because a touch screen has no hover.
          onPointerDown={(event) => event.preventDefault()}
          onClick={(event) => {
            event.preventDefault();
            setIsOpen(true);
          }}
        >
          {source.number}
        </button>
      </Tooltip.Trigger>
      {/* Inside of the main landmark, where a screen reader looks for it. */}
      <Tooltip.Portal container={document.querySelector("main")}>
        <Tooltip.Content sideOffset={6} collisionPadding={12} className="z-50 max-h-[60vh] w-[min(26rem,calc(100vw-24px))] overflow-y-auto rounded-md border border-line-2 bg-surface p-3 text-sm text-ink shadow-high animate-pop">
          {evidence.map((one) => (
            <blockquote key={one.id} className="mb-2 border-l-2 border-line-2 pl-3">
              <Literal text={one.quote} keepEmoji />
              {one.checked === "unchecked" && <span className="block text-xs text-wait">This quotation could not be checked.</span>}
            </blockquote>
          ))}
          <p className="font-medium">
            <Literal text={source.title || source.site} keepEmoji />
          </p>
          <p className="text-xs text-ink-2">
            {[source.site, source.published && `published ${source.published}`, `read ${source.read}`, classLabel(source.source_class)].filter(Boolean).join(" · ")}
          </p>
          <p className="mt-1 flex items-center gap-1.5 text-xs text-ink-2">
            {isConfirmed ? <CircleCheck className="size-3.5 text-done" aria-hidden /> : <CircleHelp className="size-3.5 text-ink-3" aria-hidden />}
            {isConfirmed ? "Confirmed by another source" : "The only source for this"}
          </p>
        </Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}
