// @vitest-environment jsdom
import { QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { act, render, screen } from "@testing-library/react";
import { type ReactElement, useState } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { InboxItem } from "@/api/client";
import { inboxItemQuery, openQuery, overviewQuery, queryClient } from "@/api/queries";
import Notifications from "@/shell/Notifications";
import { attachToaster } from "@/ui/toast";

const ask = (id: string, more: Partial<InboxItem> = {}) =>
  ({ state: "unread", needs_answer: true, node_status: "waiting", always: null, ...more, message: { id, kind: "question", team_id: "team_1", sender: `agent_${id}`, sender_name: id, text: `Question ${id}?`, title: "", options: ["Yes"], call: null } }) as unknown as InboxItem;
/** In place of the library, whose animations need a browser: the toasts that are to be seen. */
function Toasts() {
  const [toasts, setToasts] = useState<Record<string, ReactElement>>({});
  attachToaster({
    custom: (render: (id: string) => ReactElement, { id }: { id: string }) => setToasts((before) => ({ ...before, [id]: render(id) })),
    dismiss: (id: string) => setToasts(({ [id]: _gone, ...rest }) => rest),
  } as unknown as Parameters<typeof attachToaster>[0]);
  return Object.entries(toasts).map(([id, toast]) => <div key={id}>{toast}</div>);
}
const inboxOf = (...items: InboxItem[]) => ({ items, unread: items.length, open: items.length, newest: "", cursor: null });
const setInbox = (...items: InboxItem[]) =>
  act(async () => {
    for (const item of items) queryClient.setQueryData(inboxItemQuery(item.message.id).queryKey, item);
    queryClient.setQueryData(openQuery().queryKey, inboxOf(...items));
  });
const shown = () => screen.getAllByRole("group").flatMap((one) => (one.tagName === "FIELDSET" ? [one.getAttribute("aria-label")] : []));
const canAnswer = () => !screen.getByRole("button", { name: /Yes/ }).matches(":disabled");
const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

beforeEach(async () => {
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => {} }));
  vi.stubGlobal("scrollTo", () => {});
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  vi.stubGlobal("IntersectionObserver", class { observe() {} unobserve() {} disconnect() {} });
  vi.stubGlobal("ResizeObserver", class { observe() {} disconnect() {} });
  queryClient.setDefaultOptions({ queries: { staleTime: Infinity } });
  queryClient.setQueryData(overviewQuery.queryKey, []);
  queryClient.setQueryData(openQuery().queryKey, inboxOf());
  const page = () => (
    <QueryClientProvider client={queryClient}>
      <p>Page</p>
      <Notifications knownAtStart={{ open: new Set(), newest: "" }} />
      <Toasts />
    </QueryClientProvider>
  );
  render(<RouterProvider router={createRouter({ routeTree: createRootRoute({ component: page }), history: createMemoryHistory() })} />);
  await screen.findByText("Page");
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

it("a toast that takes the place of an answered one takes no press before the person can have seen it", async () => {
  await setInbox(ask("one"), ask("two"));
  await pass(300);
  expect([shown(), canAnswer()]).toEqual([["one asks"], false]);
  await pass(700);
  expect(canAnswer()).toBe(true);
  await setInbox(ask("two"));
  await pass(600);
  expect([shown(), canAnswer()]).toEqual([["two asks"], false]);
  await pass(700);
  expect(canAnswer()).toBe(true);
});

it("a toast shows the question as it is now, and late ones last", async () => {
  await setInbox(ask("one"), ask("two"), ask("three"));
  await pass(1_000);
  await setInbox(ask("one", { node_status: "completed" }), ask("two", { node_status: "failed" }), ask("three"));
  await pass(1_000);
  expect([shown(), screen.getByText(/has ended/).textContent]).toEqual([["one asks"], "The task that asked has ended, so nothing starts by itself: you are asked what to do with your answer."]);
  await setInbox(ask("two", { node_status: "failed" }), ask("three"));
  await pass(1_000);
  expect([shown(), screen.queryByText(/has ended/)]).toEqual([["three asks"], null]);
});
