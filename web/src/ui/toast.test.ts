import { beforeEach, expect, test, vi } from "vitest";
import { attachToaster, toast } from "@/ui/toast";

const nothing = () => null as never;
const dismissed: unknown[] = [];
const shown: unknown[] = [];
// What the library does with a toast is seen in the browser; here it only notes the calls.
attachToaster({ custom: (_: unknown, { id }: { id: string }) => shown.push(id), dismiss: (id: unknown) => dismissed.push(id) } as never);

beforeEach(() => {
  vi.useFakeTimers();
  dismissed.length = shown.length = 0;
});

test("a report goes away with the page; a toast with a button stays", () => {
  toast.report(nothing);
  toast.custom(nothing);
  vi.advanceTimersByTime(2_000);
  toast.leavePage();
  expect(dismissed).toEqual([shown[0]]);
  toast.leavePage();
  expect(dismissed).toEqual([shown[0]]);
});

test("a report of the action that has changed the page stays until the next page", () => {
  toast.report(nothing);
  toast.leavePage();
  expect(dismissed).toEqual([]);
  vi.advanceTimersByTime(2_000);
  toast.leavePage();
  expect(dismissed).toEqual(shown);
});
