// @vitest-environment jsdom
import { QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { queryClient } from "@/api/queries";
import { ConfirmAll, MOST_AT_ONCE } from "@/parts/ConfirmAll";

const list = (...ids: string[]) => (
  <QueryClientProvider client={queryClient}>
    <ConfirmAll ids={ids} />
  </QueryClientProvider>
);
const press = (name: string) => userEvent.click(screen.getByRole("button", { name }));
let sent: { key: string | null; confirm: string[] }[] = [];
let answer: () => Response;

beforeEach(() => {
  sent = [];
  answer = () => Response.json({ ids: [] });
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push({ key: request.headers.get("idempotency-key"), confirm: ((await request.json()) as { confirm: string[] }).confirm });
    return answer();
  });
});

it("what came after the list was opened is confirmed only once it is included", async () => {
  const { rerender } = render(list("a", "b"));
  rerender(list("a", "b", "c"));
  await press("Confirm all 2");
  await press("Include 1 new");
  await press("Confirm all 3");
  expect(sent.map(({ confirm }) => confirm)).toEqual([["a", "b"], ["a", "b", "c"]]);
});

it("a list whose response was lost is sent with the same key, another list with a new one", async () => {
  const { rerender } = render(list("a", "b", "c"));
  answer = () => new Response("", { status: 502 });
  await press("Confirm all 3");
  await waitFor(() => expect(screen.getByRole<HTMLButtonElement>("button").disabled).toBe(false));
  await press("Confirm all 3");
  await waitFor(() => expect(screen.getByRole<HTMLButtonElement>("button").disabled).toBe(false));
  rerender(list("a", "b"));
  await press("Confirm all 2");
  expect([sent.map(({ key }) => key === sent[0]!.key), sent.map(({ confirm }) => confirm.length)]).toEqual([[true, true, false], [3, 3, 2]]);
});

it("more than the server takes at once are not called all", async () => {
  render(list(...Array.from({ length: MOST_AT_ONCE + 1 }, (_, index) => `k${index}`)));
  await press(`Confirm the first ${MOST_AT_ONCE} of ${MOST_AT_ONCE + 1}`);
  expect(sent.map(({ confirm }) => confirm.length)).toEqual([MOST_AT_ONCE]);
});
