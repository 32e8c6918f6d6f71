// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { setServerAway } from "@/live/chunks";
import { isField, keepForPalette, openPalette } from "@/shell/openPalette";
import { PALETTE_FIELD, useShell } from "@/parts/shellState";

/** Press a key; return whether the page got it. */
const press = (key: string, target: EventTarget = document.body) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const field = () => document.body.appendChild(document.createElement("textarea"));
const state = () => [useShell.getState().palette, useShell.getState().paletteText];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
  addEventListener("keydown", keepForPalette, { capture: true });
});
afterEach(() => {
  removeEventListener("keydown", keepForPalette, { capture: true });
  setServerAway(false);
  useShell.setState({ palette: false, paletteText: "", isPaletteMissing: false });
  document.body.replaceChildren();
});

describe("keys before the palette is there", () => {
  it("are kept, also from the field that the shortcut was pressed in", () => {
    const writing = field();
    writing.focus();
    openPalette();
    expect([press("k", writing), press("e"), press("x"), press("Backspace")]).toEqual([false, false, false, false]);
    expect(state()).toEqual([true, "ke"]);
  });

  it("go to a field that is focused afterwards", () => {
    openPalette();
    expect(press("k", field())).toBe(true);
    expect(state()).toEqual([true, ""]);
  });

  it("go to the page a second later; Escape still gives the palette up", () => {
    openPalette();
    vi.advanceTimersByTime(1_001);
    expect([press("k"), ...state()]).toEqual([true, true, ""]);
    press("Escape");
    expect(state()).toEqual([false, ""]);
  });
});

it("the shortcut selects the text of a palette that is open", () => {
  const text = Object.assign(document.body.appendChild(document.createElement("input")), { id: PALETTE_FIELD, value: "kettle" });
  useShell.setState({ palette: true });
  openPalette();
  expect([text.selectionStart, text.selectionEnd, useShell.getState().palette]).toEqual([0, 6, true]);
});

it("the palette stays closed while the server is away and its code is not there", () => {
  setServerAway(true);
  openPalette();
  expect([press("k"), ...state(), useShell.getState().isPaletteMissing]).toEqual([true, false, "", true]);
  setServerAway(false);
  openPalette();
  expect([...state(), useShell.getState().isPaletteMissing]).toEqual([true, "", false]);
});

it("a checkbox is no text field: the single keys work while it has the focus", () => {
  document.body.innerHTML = "<input type='checkbox'><input type='radio'><input><textarea></textarea><select></select><button></button>";
  expect([...document.body.children].map(isField)).toEqual([false, false, true, true, true, false]);
});
