// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { keepFocus } from "@/shell/focusKeeper";

let end: () => void;
const { checkVisibility } = Element.prototype;
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
afterEach(() => {
  end();
  Element.prototype.checkVisibility = checkVisibility;
});

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

it("what a loading screen hides does not keep the focus", () => {
  find("main").id = "main";
  find("main").tabIndex = -1;
  const link = find("#link");
  link.focus();
  press("Enter");
  Element.prototype.checkVisibility = function () {
    return this !== link;
  };
  link.blur(); // as browsers do when it is hidden
  vi.advanceTimersByTime(3_000);
  expect(focused()).toBe("field");
});

it("a button gets the focus back that was disabled for a moment", () => {
  find("#approve").parentElement!.removeAttribute("data-question");
  const button = find("#approve") as HTMLButtonElement;
  button.focus();
  press("Enter");
  button.disabled = true;
  button.blur(); // as browsers do
  button.disabled = false;
  vi.advanceTimersByTime(3_000);
  expect(focused()).toBe("approve");
});

it("a notice outside the content that a key closes gives the focus to the content, not to the sidebar", () => {
  document.body.innerHTML = "<div><nav><a href='/'>Home</a></nav><main id='main' tabindex='-1'></main><ol><li><button id='undo'>Undo</button></li></ol></div>";
  find("#undo").focus();
  press("Enter");
  find("li").remove();
  vi.advanceTimersByTime(3_000);
  expect(focused()).toBe("main");
});
