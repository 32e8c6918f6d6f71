/** Markdown, as soon as its parts are loaded; until then, and if it cannot be read, the words alone. */
import { Component, lazy, memo, type ReactNode, Suspense } from "react";

const MarkdownBody = lazy(() => import("@/conversation/MarkdownBody"));
/** What plain text never has; without any of it there is nothing to load for. */
const MARKED = /[*_`#[\]|~<>]|&[#a-z]|^\s*([-+]|\d+[.)])\s|https?:|www\.|\n/im;

/** `breaks`: line breaks stand as they were typed, as in a chat. */
export const Markdown = memo(function Markdown({ text, breaks = false }: { text: string; breaks?: boolean }) {
  const plain = <div className="prose whitespace-pre-wrap">{text}</div>;
  if (!MARKED.test(text)) return plain;
  return (
    <Otherwise plain={plain} text={text}>
      <Suspense fallback={plain}>
        <MarkdownBody text={text} breaks={breaks} />
      </Suspense>
    </Otherwise>
  );
});

/** What one message does to its reader must not take the screen from everybody. */
class Otherwise extends Component<{ plain: ReactNode; text: string; children: ReactNode }, { broken: string | null }> {
  override state = { broken: null };
  static getDerivedStateFromError = () => ({ broken: "" });
  override componentDidCatch(): void {
    this.setState({ broken: this.props.text });
  }
  override render(): ReactNode {
    const { broken } = this.state as { broken: string | null };
    return broken === "" || broken === this.props.text ? this.props.plain : this.props.children;
  }
}
