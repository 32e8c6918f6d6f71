import { describe, expect, it } from "vitest";
import { NONE, only, toggle, toggleAll } from "@/views/inbox/selection";

const ORDER = ["a", "b", "c", "d", "e"];
const ids = (selection: { ids: ReadonlySet<string> }) => [...selection.ids].sort().join("");

describe("selection", () => {
  it("selects one, a range, and takes a range away", () => {
    const one = toggle(NONE, "b", ORDER);
    const range = toggle(one, "d", ORDER, true);
    const back = toggle(range, "c", ORDER, true);
    expect([one, range, back].map(ids)).toEqual(["b", "bcd", "b"]);
    expect(ids(toggle(toggle(NONE, "d", ORDER), "a", ORDER, true))).toBe("abcd");
    expect(ids(toggle(NONE, "c", ORDER, true))).toBe("c");
  });

  it("selects all and none, and forgets what is gone", () => {
    const all = toggleAll(NONE, ORDER);
    expect([ids(all), ids(toggleAll(all, ORDER)), ids(only(all, ["b", "x"]))]).toEqual(["abcde", "", "b"]);
    expect(only(all, ORDER)).toBe(all);
  });
});
