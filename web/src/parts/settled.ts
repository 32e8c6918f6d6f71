/** Settled: whether a card was on screen long enough for a press to be meant for it. Cards appear and move while people press keys and buttons. */
import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** A pointer is refused on what came under it more recently. People need about 250 ms to see it. */
const POINTER_MS = 400;
/** A key decides in a card that was on screen at least this long. */
const KEY_MS = 1_000;
const STEP_MS = 100;
/** A smaller move is none: the same button is still under the pointer. */
const MOVE_PX = 4;

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
  /** Whether the last press was refused. */
  isRefused: boolean;
  /** For the element with the ref: they refuse presses that the person cannot have meant. */
  guards: { onPointerDownCapture: (event: React.PointerEvent) => void; onClickCapture: (event: React.MouseEvent) => void };
}

/** Watch where an element with buttons is, as long as it is shown. While it has just come or moved, it has `data-unsettled`. */
export function useSettling(): Settling {
  const ref = useRef<HTMLDivElement>(null);
  const [isRefused, setIsRefused] = useState(false);
  const refuses = useRef(false);
  useLayoutEffect(() => {
    const element = ref.current!;
    let place: Sample | undefined;
    let settles: ReturnType<typeof setTimeout> | undefined;
    const follow = () => {
      const now = look(element).at(-1)!;
      if (place && Math.hypot(now.left - place.left, now.top - place.top) < MOVE_PX) return;
      place = now;
      element.dataset.unsettled = "";
      clearTimeout(settles);
      settles = setTimeout(() => delete element.dataset.unsettled, POINTER_MS);
    };
    follow();
    const timer = setInterval(follow, STEP_MS);
    // It moves when something scrolls, or when something around it changes its size: both are told in the same frame.
    const observer = new ResizeObserver(follow);
    for (let around: Element | null = element; around; around = around.parentElement) observer.observe(around);
    addEventListener("scroll", follow, { capture: true, passive: true });
    return () => {
      clearInterval(timer);
      clearTimeout(settles);
      observer.disconnect();
      removeEventListener("scroll", follow, { capture: true });
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
  return { ref, isRefused, guards };
}
