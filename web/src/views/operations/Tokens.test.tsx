// @vitest-environment jsdom
import { QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { queryClient } from "@/api/queries";
import { tokensQuery } from "@/views/operations/queries";
import Tokens from "@/views/operations/Tokens";

it("marks the session of this browser, and warns before it is revoked that the person is signed out", async () => {
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  const session = { person_id: "p", kind: "session", scope: "admin", created_at: "2026-01-01T00:00:00Z", expires_at: null, used_at: null } as const;
  queryClient.setQueryData(tokensQuery.queryKey, [
    { ...session, id: "pass_1", name: "other", is_own: false },
    { ...session, id: "pass_2", name: "mine", is_own: true },
  ]);
  render(<QueryClientProvider client={queryClient}><Tokens /></QueryClientProvider>);
  const [mine, other] = screen.getAllByRole("listitem");
  expect([within(mine!).queryByText("This browser") !== null, within(other!).queryByText("This browser") !== null]).toEqual([true, false]);
  fireEvent.click(within(mine!).getByRole("button", { name: "Revoke mine" }));
  expect((await screen.findByRole("dialog", undefined, { timeout: 10_000 })).textContent).toContain("You are signed out of this browser");
});
