/** Markdown: agents' text as Markdown. Plain text is shown until the Markdown chunk is loaded, and if rendering fails. */
import { Component, memo, type ReactNode, Suspense } from "react";
import { withoutMarks } from "@/reading/fence";
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
