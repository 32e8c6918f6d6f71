// @vitest-environment jsdom
import { renderHook } from "@testing-library/react";
import { expect, it } from "vitest";
import type { InboxItem } from "@/api/client";
import { useListKeys } from "@/views/inbox/useListKeys";
import { beginGo, followsGo } from "@/parts/goKeys";

it.each(["before", "after"])("a key after `g` does nothing in the list, if the shortcuts listen %s it", (order) => {
  const done: string[] = [];
  const went: string[] = [];
  const onKey = (event: KeyboardEvent) => {
    if (followsGo(event)) went.push(event.key);
    else if (event.key === "g") beginGo();
  };
  const listen = () => addEventListener("keydown", onKey);
  const press = (keys: string) => [...keys].forEach((key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })));
  if (order === "before") listen();
  renderHook(() =>
    useListKeys({
      order: ["a", "b"],
      item: "a",
      selected: [],
      opened: { message: { id: "a" }, box: "inbox" } as InboxItem,
      open: (id) => done.push(`open ${id}`),
      select: (id) => done.push(`select ${id}`),
      file: ({ action }) => done.push(action),
      clear: () => done.push("clear"),
      box: "inbox",
    }),
  );
  if (order === "after") listen();
  press("gegxgj");
  expect([done, went]).toEqual([[], ["e", "x", "j"]]);
  press("xje");
  expect([done, went]).toEqual([["select a", "open b", "archive"], ["e", "x", "j"]]);
  removeEventListener("keydown", onKey);
});

it.each([
  ["inbox", "inbox", ["archive"]],
  ["inbox", "archived", []],
  ["inbox", "snoozed", []],
  ["snoozed", "snoozed", ["restore"]],
  ["archived", "inbox", []],
  ["archived", "archived", ["restore"]],
] as const)("`e` in the box %s files an opened item of the box %s: %o", (box, of, expected) => {
  const done: string[] = [];
  const opened = { message: { id: "a" }, box: of } as InboxItem;
  const nothing = () => {};
  const { unmount } = renderHook(() => useListKeys({ order: [], item: "a", selected: [], opened, open: nothing, select: nothing, file: ({ action }) => done.push(action), clear: nothing, box }));
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "e", bubbles: true }));
  unmount();
  expect(done).toEqual(expected);
});
