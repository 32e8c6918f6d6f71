/** Markdown, as soon as its parts are loaded; until then, and if it cannot be read, the words alone. */
import { Component, lazy, memo, type ReactNode, Suspense } from "react";

const MarkdownBody = lazy(() => import("@/conversation/MarkdownBody"));
/** What plain text never has; without any of it there is nothing to load for. */
const HAS_MARKUP = /[*_`#[\]|~<>]|&[#a-z]|^\s*([-+]|\d+[.)])\s|https?:|www\.|\n/im;

/** `breaks`: line breaks stand as they were typed, as in a chat. */
export const Markdown = memo(function Markdown({ text, breaks = false }: { text: string; breaks?: boolean }) {
  const fallback = <div className="prose whitespace-pre-wrap">{text}</div>;
  if (!HAS_MARKUP.test(text)) return fallback;
  return (
    <MarkdownErrorBoundary fallback={fallback} text={text}>
      <Suspense fallback={fallback}>
        <MarkdownBody text={text} breaks={breaks} />
      </Suspense>
    </MarkdownErrorBoundary>
  );
});

/** What one message does to its reader must not take the screen from everybody. */
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
