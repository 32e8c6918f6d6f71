// @vitest-environment jsdom
import { act, renderHook } from "@testing-library/react";
import { expect, it } from "vitest";
import { useStoredEdit } from "@/lib/storedDraft";

/** The dialog with the text of the file as it is when the dialog opens. */
const opened = (text: string) => renderHook(() => useStoredEdit("skill.test", text)).result;
const change = (dialog: ReturnType<typeof opened>, text: string) => act(() => dialog.current[1](text));

it("keeps a change to a file and says if the file has changed since the change was begun", () => {
  const first = opened("old");
  change(first, "mine");
  expect(opened("old").current).toMatchObject({ 0: "mine", 2: false });
  const later = opened("new");
  expect(later.current).toMatchObject({ 0: "mine", 2: true });
  change(later, "mine, longer");
  expect(opened("new").current).toMatchObject({ 0: "mine, longer", 2: true });
  change(later, "new");
  expect(opened("newer").current).toMatchObject({ 0: "newer", 2: false });
});
