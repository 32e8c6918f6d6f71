/**
 * FocusKeeper: gives the focus a place when a key removes the element that had it.
 *
 * A key that closes a dialog, archives an item or revokes a token takes away the focused element. Browsers then focus the
 * whole page: a screen reader starts at the top. The keeper focuses what took the element's place.
 */
import { isField } from "@/shell/openPalette";

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), [tabindex='0']";
/** Never a button that decides: a key that is held down or pressed again would press it. Nor the link that skips to the content: it covers the first buttons of a phone. */
const EXCLUDED = "[data-question], [href='#main']";
const OVERLAY = "[role=dialog], [role=menu]";
/** How long to wait for what a key has begun: the answer of the server removes the element. */
const WAIT_MS = 2_500;
const STEP_MS = 120;

/** An element and its place among its parent's children. */
export interface Place {
  element: Element;
  index: number;
}

/** Return the element and all elements around it, from the inside. */
function placesOf(element: Element): Place[] {
  const places: Place[] = [];
  for (let at: Element | null = element; at && at !== document.body; at = at.parentElement) places.push({ element: at, index: at.parentElement ? [...at.parentElement.children].indexOf(at) : 0 });
  return places;
}

/** Return the element to focus: the first of the places if it still exists and is enabled, otherwise the nearest focusable element in the same group. */
export function nearest(places: readonly Place[]): HTMLElement | null {
  for (const [at, { element }] of places.entries()) {
    if (!element.isConnected) continue;
    if (at === 0 && element.checkVisibility() && !element.matches(":disabled") && !element.closest(EXCLUDED)) return element as HTMLElement;
    if (at === 0) continue;
    // Not further out than the content: the first link of the sidebar has nothing to do with what the key did.
    const main = element.querySelector<HTMLElement>("#main");
    if (main) return main;
    const { index } = places[at - 1]!;
    const children = [...element.children];
    const inOrder = [...children.slice(index), ...children.slice(0, index).reverse()];
    const found = inOrder.map((child) => (child.matches(FOCUSABLE) ? child : child.querySelector(FOCUSABLE))).find((child) => child?.checkVisibility() && !child.closest(EXCLUDED));
    if (found) return found as HTMLElement;
    if (element.id === "main") return element as HTMLElement;
  }
  return null;
}

/** Start to keep the focus; return a function that ends it. */
export function keepFocus(): () => void {
  let places: Place[] = [];
  let timer: ReturnType<typeof setInterval> | undefined;
  const onFocus = ({ target }: FocusEvent) => {
    if (target instanceof Element && !target.closest(OVERLAY)) places = placesOf(target);
  };
  const onKey = (event: KeyboardEvent) => {
    const isTyping = event.key.length === 1 && !event.ctrlKey && !event.metaKey && isField(event.target);
    clearInterval(timer);
    if (document.activeElement === document.body) {
      // The person has left the element, which is still there. A dialog that is closed later does not bring them back to it.
      if (places[0]?.element.isConnected) places = [];
      return;
    }
    if (isTyping || event.key === "Tab") return;
    let isLost = document.activeElement?.closest(OVERLAY) != null;
    const { pathname } = location;
    const until = Date.now() + WAIT_MS;
    timer = setInterval(() => {
      const isOver = Date.now() > until;
      if (isOver) clearInterval(timer);
      if (document.activeElement !== document.body || !places[0]) return;
      const { element } = places[0];
      // A screen that still loads hides the one before it: the element exists, but nobody sees it.
      const isGone = !element.isConnected || !element.checkVisibility();
      // A button may be disabled for less than a step. Only a text field gives the focus away by itself, at Escape, and does not get it back.
      isLost ||= isGone || !isField(element);
      if (!isLost) return clearInterval(timer);
      // A button is disabled while its request runs.
      if (isOver || isGone || !element.matches(":disabled")) (pathname === location.pathname ? nearest(places) : document.getElementById("main"))?.focus();
    }, STEP_MS);
  };
  const stop = () => clearInterval(timer);
  addEventListener("focusin", onFocus);
  addEventListener("keydown", onKey, { capture: true });
  addEventListener("pointerdown", stop, { capture: true });
  return () => {
    stop();
    removeEventListener("focusin", onFocus);
    removeEventListener("keydown", onKey, { capture: true });
    removeEventListener("pointerdown", stop, { capture: true });
  };
}
