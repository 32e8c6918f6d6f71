/** Markdown, as soon as its parts are loaded; until then the words alone. */
import { lazy, memo, Suspense } from "react";

const MarkdownBody = lazy(() => import("@/thread/MarkdownBody"));
/** What plain text never has; without any of it there is nothing to load for. */
const MARKED = /[*_`#[\]|~<>]|^\s*([-+]|\d+[.)])\s|https?:|\n/m;

/** `breaks`: line breaks stand as they were typed, as in a chat. */
export const Markdown = memo(function Markdown({ text, breaks = false }: { text: string; breaks?: boolean }) {
  const plain = <div className="prose whitespace-pre-wrap">{text}</div>;
  if (!MARKED.test(text)) return plain;
  return (
    <Suspense fallback={plain}>
      <MarkdownBody text={text} breaks={breaks} />
    </Suspense>
  );
});
