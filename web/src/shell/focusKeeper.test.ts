// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { keepFocus } from "@/shell/focusKeeper";

let end: () => void;
const find = (selector: string) => document.querySelector<HTMLElement>(selector)!;
const press = (key: string) => document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const focused = () => document.activeElement!.id || document.activeElement!.tagName;
/** Open a dialog with a key and close it with Escape; wait until the focus has a place. */
function openAndClose(): void {
  press("?");
  const dialog = document.body.appendChild(Object.assign(document.createElement("div"), { innerHTML: "<button>Close</button>" }));
  dialog.setAttribute("role", "dialog");
  dialog.querySelector("button")!.focus();
  press("Escape");
  dialog.remove();
  vi.advanceTimersByTime(3_000);
}

beforeEach(() => {
  vi.useFakeTimers();
  Element.prototype.checkVisibility = () => true; // jsdom draws nothing
  document.body.innerHTML = "<main><a id='link' href='/'>Board</a><textarea id='field'></textarea><div data-question><button id='approve'>Approve</button></div></main>";
  end = keepFocus();
});
afterEach(() => end());

it("a dialog that a key closes gives the focus back to what had it", () => {
  find("#link").focus();
  openAndClose();
  expect(focused()).toBe("link");
});

it("a dialog that a key closes does not bring back the field that the person left before it", () => {
  find("#field").focus();
  find("#field").blur();
  openAndClose();
  expect(focused()).toBe("BODY");
});

it("a button that decides does not get the focus back", () => {
  find("#approve").focus();
  openAndClose();
  expect(focused()).toBe("field");
});
