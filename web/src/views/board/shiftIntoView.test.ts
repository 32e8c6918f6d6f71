import { expect, it } from "vitest";
import { shiftIntoView } from "@/views/board/shiftIntoView";

it("moves as little as needed, and what does not fit to its start, from wherever it is and only once", () => {
  const shifts = [[30, 100], [10, 100], [250, 100], [10, 400], [-200, 400], [28, 400]].map(([at, size]) => shiftIntoView(at!, size!, 28, 300));
  expect(shifts).toEqual([0, 18, -50, 18, 228, 0]);
});
