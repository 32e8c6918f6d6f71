// @vitest-environment jsdom
import { afterEach, expect, it } from "vitest";
import { isForMessage } from "@/shell/openPalette";

const page = (composer: string) => (document.body.innerHTML = `<main tabindex="-1"></main>${composer}`);
/** Press keys on an element; return those that are no shortcuts. */
function kept(selector: string, ...keys: string[]): string[] {
  const found: string[] = [];
  const listen = (event: KeyboardEvent) => void (isForMessage(event) && found.push(event.key));
  addEventListener("keydown", listen);
  for (const key of keys) document.querySelector(selector)!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  removeEventListener("keydown", listen);
  return found;
}
afterEach(() => document.body.replaceChildren());

it("keeps characters that are typed on a button of the composer", () => {
  page("<div data-composer><button>Attach files</button></div>");
  expect(kept("button", "N", "i", "c", "e", "1", "Escape", "Enter")).toEqual(["N", "i", "c", "e", "1"]);
  expect(kept("main", "c", "1")).toEqual([]);
});

it("keeps all characters but r while a message is unsent", () => {
  page("<div data-composer data-draft></div>");
  expect(kept("main", "c", "1", "g", "?", "r", "Escape")).toEqual(["c", "1", "g", "?"]);
});

it("keeps nothing on a page without a composer", () => {
  page("");
  expect(kept("main", "c", "1")).toEqual([]);
});
