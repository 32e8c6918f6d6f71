/** Markdown, as soon as its parts are loaded; until then the words alone. */
import { lazy, memo, Suspense } from "react";

const MarkdownBody = lazy(() => import("@/thread/MarkdownBody"));
/** What plain text never has; without any of it there is nothing to load for. */
const MARKED = /[*_`#[\]|~<>]|^\s*([-+]|\d+[.)])\s|https?:|\n/m;

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const plain = <div className="prose whitespace-pre-wrap">{text}</div>;
  if (!MARKED.test(text)) return plain;
  return (
    <Suspense fallback={plain}>
      <MarkdownBody text={text} />
    </Suspense>
  );
});
