/** Settled: whether a card was on screen long enough for a press to be meant for it. Cards appear and move while people press keys and buttons. */
import { type RefObject, useEffect, useRef, useState } from "react";

/** A pointer is refused on what came under it more recently. People need about 250 ms to see it. */
const POINTER_MS = 400;
/** A key decides in a card that was on screen at least this long. */
const KEY_MS = 1_000;
const STEP_MS = 100;

interface Sample {
  at: number;
  left: number;
  top: number;
  isSeen: boolean;
}

const history = new WeakMap<Element, Sample[]>();

function look(element: Element): readonly Sample[] {
  const { left, top, bottom } = element.getBoundingClientRect();
  const at = performance.now();
  const before = history.get(element) ?? [];
  // One sample that is old enough is kept: it says where the element was all that time ago.
  const first = Math.max(0, before.findLastIndex((one) => at - one.at >= KEY_MS));
  const samples = [...before.slice(first), { at, left, top, isSeen: bottom > 0 && top < innerHeight && document.visibilityState === "visible" }];
  history.set(element, samples);
  return samples;
}

/** Return the samples of the last so many milliseconds, or null if the element is not known that long. */
function samplesOf(element: Element, ms: number): readonly Sample[] | null {
  const samples = look(element);
  const now = samples.at(-1)!.at;
  const first = samples.findLastIndex((one) => now - one.at >= ms);
  return first < 0 ? null : samples.slice(first);
}

/** Whether a key may decide here: it was on screen all of the last second. */
export const isSettledForKeys = (element: Element): boolean => samplesOf(element, KEY_MS)?.every((one) => one.isSeen) ?? false;

/** Whether this button was under this point before the person can have begun to press. */
function wasUnder(element: Element, button: Element, x: number, y: number): boolean {
  const samples = samplesOf(element, POINTER_MS);
  if (!samples) return false;
  const { left, top, right, bottom } = button.getBoundingClientRect();
  const now = samples.at(-1)!;
  return samples.every((one) => {
    const [dx, dy] = [one.left - now.left, one.top - now.top];
    return x >= left + dx && x <= right + dx && y >= top + dy && y <= bottom + dy;
  });
}

interface Settling {
  ref: RefObject<HTMLDivElement | null>;
  /** Whether it appeared so recently that nobody can have meant it. */
  isNew: boolean;
  /** Whether the last press was refused. */
  isRefused: boolean;
  /** For the element with the ref: they refuse presses that the person cannot have meant. */
  guards: { onPointerDownCapture: (event: React.PointerEvent) => void; onClickCapture: (event: React.MouseEvent) => void };
}

/** Watch where an element with buttons is, as long as it is shown. */
export function useSettling(): Settling {
  const ref = useRef<HTMLDivElement>(null);
  const [isNew, setIsNew] = useState(true);
  const [isRefused, setIsRefused] = useState(false);
  const refuses = useRef(false);
  useEffect(() => {
    const element = ref.current!;
    look(element);
    const timer = setInterval(() => look(element), STEP_MS);
    const settled = setTimeout(() => setIsNew(false), POINTER_MS);
    return () => {
      clearInterval(timer);
      clearTimeout(settled);
    };
  }, []);
  const guards: Settling["guards"] = {
    onPointerDownCapture: ({ target, clientX, clientY }) => {
      // Who has typed an answer means its button, wherever it has moved.
      const button = (target as Element).closest("button:not([data-typed])");
      refuses.current = button !== null && !wasUnder(ref.current!, button, clientX, clientY);
      setIsRefused(refuses.current);
    },
    onClickCapture: (event) => {
      // A click by the keyboard has no pointer: it goes to the button that has the focus.
      if (!refuses.current || event.detail === 0) return;
      event.preventDefault();
      event.stopPropagation();
    },
  };
  return { ref, isNew, isRefused, guards };
}
