/** Markdown: agents' text as Markdown. Plain text is shown until the Markdown chunk is loaded, and if rendering fails. */
import { Component, memo, type ReactNode, Suspense } from "react";
import { withoutMarks } from "@/reading/fence";
import { Literal } from "@/reading/Literal";
import { lazyChunk } from "@/live/chunks";

const MarkdownBody = lazyChunk(() => import("@/reading/MarkdownBody"));
/** Characters that may be Markdown. A text without them is shown as it is, and the Markdown chunk is not loaded. */
const HAS_MARKUP = /[*_`#[\]|~<>]|&[#a-z]|^\s*([-+]|\d+[.)])\s|https?:|www\.|\n|\w\.[a-z]{1,8}\b|\$[^\s\d]|\\[([]/im;

/** `breaks`: keep single line breaks, as in a chat. `isFile`: the text is a file's, so no line of it is left out. */
export const Markdown = memo(function Markdown({ text: given, breaks = false, isFile = false }: { text: string; breaks?: boolean; isFile?: boolean }) {
  const text = isFile ? given : withoutMarks(given);
  const fallback = <div dir="auto" className="prose whitespace-pre-wrap">{text}</div>;
  if (!HAS_MARKUP.test(text)) return fallback;
  return (
    <MarkdownErrorBoundary fallback={fallback} text={text}>
      <Suspense fallback={fallback}>
        <MarkdownBody text={text} breaks={breaks} />
      </Suspense>
    </MarkdownErrorBoundary>
  );
});

/** Text that a person decides by as Markdown that hides nothing but its marks: HTML, links and references stay as they are written, and hidden characters are shown as code points. */
export const WholeMarkdown = memo(function WholeMarkdown({ text, className }: { text: string; className?: string }) {
  const literal = (
    <p className="literal">
      <Literal text={text} keepEmoji />
    </p>
  );
  // A fixed base direction: right-to-left words in the text cannot change the order of the words around them.
  return (
    <div dir="ltr" data-words className={className}>
      {HAS_MARKUP.test(text) ? (
        <MarkdownErrorBoundary fallback={literal} text={text}>
          <Suspense fallback={literal}>
            <MarkdownBody text={text} breaks isWhole />
          </Suspense>
        </MarkdownErrorBoundary>
      ) : (
        literal
      )}
    </div>
  );
});

/** Shows plain text if one message breaks the Markdown renderer. Without this boundary the whole screen would fail. */
class MarkdownErrorBoundary extends Component<{ fallback: ReactNode; text: string; children: ReactNode }, { failedText: string | null }> {
  override state = { failedText: null };
  static getDerivedStateFromError = () => ({ failedText: "" });
  override componentDidCatch(): void {
    this.setState({ failedText: this.props.text });
  }
  override render(): ReactNode {
    const { failedText } = this.state as { failedText: string | null };
    return failedText === "" || failedText === this.props.text ? this.props.fallback : this.props.children;
  }
}
