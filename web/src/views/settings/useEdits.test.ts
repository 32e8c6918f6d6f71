// @vitest-environment jsdom
import { act, renderHook } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { useEdits } from "@/views/settings/useEdits";

const trim = ({ trust, folders }: { trust: string; folders: string }) => ({ trust, folders: folders.trim() });
const form = () => renderHook((saved: { trust: string; folders: string }) => useEdits(saved, "permissions.team_1", trim), { initialProps: { trust: "normal", folders: "/a" } });

beforeEach(() => sessionStorage.clear());

describe("a form", () => {
  it("sends only what was edited, and shows what was changed elsewhere", () => {
    const { result, rerender } = form();
    act(() => result.current.set({ folders: "/b " }));
    rerender({ trust: "strict", folders: "/a" });
    expect(result.current).toMatchObject({ values: { trust: "strict", folders: "/b " }, changes: { folders: "/b" }, isChangedElsewhere: false });
    expect(Object.keys(result.current.changes)).toEqual(["folders"]);
  });

  it("that nobody edited has nothing to save, whatever is changed elsewhere", () => {
    const { result, rerender } = form();
    rerender({ trust: "strict", folders: "/c" });
    expect(result.current).toMatchObject({ values: { trust: "strict", folders: "/c" }, isChanged: false });
    act(() => result.current.set({ folders: "/c " }));
    expect(result.current.isChanged).toBe(false);
  });

  it("keeps an edit of a field that was changed elsewhere too, and says so", () => {
    const { result, rerender } = form();
    act(() => result.current.set({ trust: "open" }));
    rerender({ trust: "strict", folders: "/a" });
    expect(result.current).toMatchObject({ values: { trust: "open" }, changes: { trust: "open" }, isChangedElsewhere: true });
    act(() => result.current.forget());
    expect(result.current).toMatchObject({ values: { trust: "strict" }, isChanged: false, isChangedElsewhere: false });
  });

  it("has what was edited while it was saved still to save", () => {
    const { result, rerender } = form();
    act(() => result.current.set({ trust: "open", folders: "/b" }));
    const { forget } = result.current;
    act(() => result.current.set({ folders: "/b\n/c" }));
    rerender({ trust: "open", folders: "/b" });
    act(() => forget());
    expect(result.current).toMatchObject({ values: { trust: "open", folders: "/b\n/c" }, changes: { folders: "/b\n/c" }, isChangedElsewhere: false });
  });
});

it("keeps the edits of a form under a name, also after the person left it, until they are saved", () => {
  const open = () => renderHook(() => useEdits({ name: "Beans", mode: "finite" }, "general.team_1"));
  const first = open();
  act(() => first.result.current.set({ name: "Peas" }));
  first.unmount();
  const second = open();
  expect(second.result.current).toMatchObject({ values: { name: "Peas", mode: "finite" }, changes: { name: "Peas" }, isChangedElsewhere: false, isRestored: true });
  act(() => second.result.current.forget());
  second.unmount();
  expect(open().result.current).toMatchObject({ values: { name: "Beans" }, isChanged: false, isRestored: false });
});

describe("an edit from before", () => {
  const open = (name: string) => renderHook(() => useEdits({ name, mode: "finite" }, "general.team_1"));
  const leave = () => {
    const { result, unmount } = open("Beans");
    act(() => result.current.set({ name: "Peas" }));
    expect(result.current.isRestored).toBe(false);
    unmount();
  };

  it("of a field that was saved elsewhere meanwhile is back, and is said to replace what is saved", () => {
    leave();
    expect(open("Lentils").result.current).toMatchObject({ values: { name: "Peas" }, isChangedElsewhere: true, isRestored: true });
  });

  it("is none any more if the same was saved elsewhere, or once the person edits the field anew", () => {
    leave();
    expect(open("Peas").result.current).toMatchObject({ isChanged: false, isRestored: false });
    leave();
    const { result } = open("Beans");
    act(() => result.current.set({ name: "Rice" }));
    expect(result.current).toMatchObject({ values: { name: "Rice" }, isRestored: false });
  });

  it("is not in another tab", () => {
    leave();
    sessionStorage.clear();
    expect([localStorage.length, open("Beans").result.current.isChanged]).toEqual([0, false]);
  });
});
