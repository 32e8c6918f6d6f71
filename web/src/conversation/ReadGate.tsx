/**
 * ReadGate: keeps a decision closed until its whole text was on screen.
 *
 * A long call is scrolled in a box, so its end may be out of sight. Each text puts an `EndMark` behind its last
 * character; *Approve* is enabled once every mark was visible in the window. *Deny* needs no reading.
 */
import { createContext, type ReactNode, useCallback, useContext, useLayoutEffect, useMemo, useRef, useState } from "react";

interface Gate {
  /** The marks that were not on screen yet, in the order of the page. */
  unread: readonly HTMLElement[];
  add: (mark: HTMLElement) => void;
  remove: (mark: HTMLElement) => void;
}

const GateContext = createContext<Gate | null>(null);

export function ReadGate({ children }: { children: ReactNode }) {
  const [unread, setUnread] = useState<readonly HTMLElement[]>([]);
  const add = useCallback((mark: HTMLElement) => setUnread((before) => [...before, mark]), []);
  const remove = useCallback((mark: HTMLElement) => setUnread((before) => before.filter((one) => one !== mark)), []);
  const gate = useMemo(() => ({ unread, add, remove }), [unread, add, remove]);
  return <GateContext value={gate}>{children}</GateContext>;
}

/** Return the ends of texts that were not on screen yet. Empty outside a gate. */
export const useUnread = (): readonly HTMLElement[] => useContext(GateContext)?.unread ?? [];

/** The end of a text that must be read. `of` is the text: another text must be read anew. */
export function EndMark({ of }: { of: string }) {
  const gate = useContext(GateContext);
  const mark = useRef<HTMLSpanElement>(null);
  const add = gate?.add;
  const remove = gate?.remove;
  // A layout effect: the mark counts as unread before the browser can deliver a click.
  useLayoutEffect(() => {
    const element = mark.current;
    if (!element || !add || !remove) return;
    add(element);
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      remove(element);
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      remove(element);
    };
  }, [of, add, remove]);
  // A box of its own: an empty inline element at the end of a wrapped line has no place to be seen at.
  return <span ref={mark} aria-hidden data-end className="inline-block h-3 w-px align-bottom" />;
}
