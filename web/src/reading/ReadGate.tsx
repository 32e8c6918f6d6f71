/**
 * ReadGate: keeps a decision closed until its whole text was on screen.
 *
 * A long call is scrolled in a box, so most of it may be out of sight. Each text is cut into pieces that fit the box, and
 * an `EndMark` stands behind each of them. *Approve* is enabled once every mark was visible in the window; a jump to the
 * end is not enough. *Deny* needs no reading.
 */
import { createContext, type ReactNode, useContext, useLayoutEffect, useMemo, useRef, useState } from "react";

type Marks = readonly HTMLElement[];
interface Gate {
  add: (marks: Marks) => void;
  remove: (marks: Marks) => void;
}

// Two contexts: a text is not rendered anew whenever one of its pieces was read.
const GateContext = createContext<Gate | null>(null);
const UnreadContext = createContext<Marks>([]);

export function ReadGate({ children }: { children: ReactNode }) {
  const [unread, setUnread] = useState<Marks>([]);
  const gate = useMemo<Gate>(
    () => ({
      add: (marks) => setUnread((before) => [...before, ...marks]),
      remove: (marks) => {
        const gone = new Set(marks);
        setUnread((before) => before.filter((one) => !gone.has(one)));
      },
    }),
    [],
  );
  return (
    <GateContext value={gate}>
      <UnreadContext value={unread}>{children}</UnreadContext>
    </GateContext>
  );
}

/** Return the marks that were not on screen yet, in the order of the page. Empty outside a gate. */
export const useUnread = (): Marks => useContext(UnreadContext);

/** Scroll to a mark so that the piece before it is on screen. The page moves only as far as it must: the buttons below stay in sight. */
function scrollToMark(mark: HTMLElement): void {
  const box = mark.closest<HTMLElement>("[data-argument]");
  if (!box) return mark.scrollIntoView({ block: "end" });
  box.scrollTop += mark.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom;
  box.scrollIntoView({ block: "nearest" });
}

/** Scroll to the next part that the person has not seen. After the last part the button disappears, so the focus moves to the text and not to an approve or deny button. */
export function readOn(unread: readonly HTMLElement[]): void {
  scrollToMark(unread[0]!);
  if (unread.length === 1) unread[0]!.closest<HTMLElement>("[data-argument]")?.focus({ preventScroll: true });
}

/** A text that must be read, with an `EndMark` behind each piece. `of` is the text: another text must be read anew. */
export function MustRead({ of, children }: { of: string; children: ReactNode }) {
  const gate = useContext(GateContext);
  const text = useRef<HTMLSpanElement>(null);
  // A layout effect: the marks count as unread before the browser can deliver a click.
  useLayoutEffect(() => {
    if (!text.current || !gate) return;
    const marks = [...text.current.querySelectorAll<HTMLElement>("[data-end]")];
    gate.add(marks);
    const observer = new IntersectionObserver((entries) => {
      const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target as HTMLElement);
      if (seen.length === 0) return;
      for (const mark of seen) observer.unobserve(mark);
      gate.remove(seen);
    });
    for (const mark of marks) observer.observe(mark);
    return () => {
      observer.disconnect();
      gate.remove(marks);
    };
  }, [of, gate]);
  return <span ref={text}>{children}</span>;
}

/** The end of a piece. It is a box of its own: an empty inline element at the end of a wrapped line has no place to be seen at. */
export const EndMark = () => <span aria-hidden data-end className="inline-block h-3 w-px align-bottom" />;
