import { expect, test } from "vitest";
import { fieldValue, snoozeTimes } from "@/views/inbox/SnoozeMenu";

const shown = (now: Date) => snoozeTimes(now).map(({ label, at }) => `${label} ${fieldValue(at)}`);

test("the suggestions are in the person's day", () => {
  expect(shown(new Date(2026, 0, 7, 10, 30))).toEqual(["Later today 2026-01-07T18:00", "Tomorrow 2026-01-08T09:00", "Next week 2026-01-12T09:00"]);
  expect(shown(new Date(2026, 0, 7, 16, 30))[0]).toBe("Later today 2026-01-07T19:30");
  expect(shown(new Date(2026, 0, 11, 22, 0))).toEqual(["Tomorrow 2026-01-12T09:00", "Next week 2026-01-12T09:00"]);
  expect(shown(new Date(2026, 0, 12, 8, 0)).at(-1)).toBe("Next week 2026-01-19T09:00");
});
