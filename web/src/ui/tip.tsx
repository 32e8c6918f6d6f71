/** Tip: the name of a control beside it, while the pointer rests on it or the keyboard is at it. */
import { cloneElement, type ComponentProps, type ReactElement, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";

const DELAY_MS = 350;
const GAP_PX = 6;
const EDGE_PX = 4;

type Trigger = ReactElement<ComponentProps<"button">>;

/** `keys` is the shortcut of the control. A touch shows no tip: it would cover what the finger opens. */
export function Tip({ text, keys, children }: { text: string; keys?: string; children: Trigger }) {
  const [anchor, setAnchor] = useState<Element | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const id = useId();
  const hide = () => {
    clearTimeout(timer.current);
    setAnchor(null);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!anchor) return;
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && setAnchor(null);
    const onScroll = () => setAnchor(null);
    addEventListener("keydown", onKey);
    addEventListener("scroll", onScroll, { capture: true, passive: true });
    return () => {
      removeEventListener("keydown", onKey);
      removeEventListener("scroll", onScroll, { capture: true });
    };
  }, [anchor]);
  const own = children.props;
  const trigger = cloneElement(children, {
    "aria-describedby": anchor ? id : own["aria-describedby"],
    onPointerEnter: (event) => {
      own.onPointerEnter?.(event);
      const element = event.currentTarget;
      if (event.pointerType !== "touch") timer.current = setTimeout(() => setAnchor(element), DELAY_MS);
    },
    onPointerLeave: (event) => {
      own.onPointerLeave?.(event);
      hide();
    },
    onPointerDown: (event) => {
      own.onPointerDown?.(event);
      hide();
    },
    onFocus: (event) => {
      own.onFocus?.(event);
      if (event.currentTarget.matches(":focus-visible")) setAnchor(event.currentTarget);
    },
    onBlur: (event) => {
      own.onBlur?.(event);
      hide();
    },
  });
  return (
    <>
      {trigger}
      {anchor && createPortal(<Bubble id={id} anchor={anchor} text={text} keys={keys} />, document.body)}
    </>
  );
}

function Bubble({ id, anchor, text, keys }: { id: string; anchor: Element; text: string; keys?: string }) {
  const bubble = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = bubble.current;
    if (!element) return;
    const at = anchor.getBoundingClientRect();
    const { width, height } = element.getBoundingClientRect();
    const left = Math.min(Math.max(EDGE_PX, (at.left + at.right - width) / 2), innerWidth - width - EDGE_PX);
    const above = at.top - GAP_PX - height;
    element.style.transform = `translate(${left}px, ${above >= EDGE_PX ? above : at.bottom + GAP_PX}px)`;
  }, [anchor]);
  return (
    <div ref={bubble} id={id} role="tooltip" dir="auto" className="pointer-events-none fixed top-0 left-0 z-50 flex items-center gap-2 rounded-sm bg-ink px-2 py-1 text-xs text-paper shadow-high">
      {text}
      {keys && <kbd className="inline-flex h-[18px] min-w-[18px] items-center justify-center rounded-xs border border-paper/30 px-1 font-sans text-2xs text-paper">{keys}</kbd>}
    </div>
  );
}
