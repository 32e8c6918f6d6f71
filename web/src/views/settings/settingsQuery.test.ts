// @vitest-environment jsdom
import { QueryClientProvider } from "@tanstack/react-query";
import { renderHook, waitFor } from "@testing-library/react";
import { createElement, type ReactNode } from "react";
import { expect, it, vi } from "vitest";
import type { Team, TeamOverview } from "@/api/client";
import { overviewQuery, queryClient } from "@/api/queries";
import { useSave } from "@/views/settings/settingsQuery";

const FOREVER = "9999-12-31T00:00:00Z";
const team = (id: string) => ({ id, name: id, status: "active", trust: "standard", quiet_hours: "", quiet_zone: "UTC", muted_until: null, unread: 3 }) as unknown as TeamOverview;

it("what was saved is in the list of teams before the list is fetched again", async () => {
  const saved = { ...team("peas"), unread: undefined, muted_until: FOREVER } as unknown as Team;
  // Only the change is answered: the list is never fetched.
  vi.stubGlobal("fetch", (asked: Request) => (asked.method === "PATCH" ? Promise.resolve(Response.json(saved)) : new Promise(() => {})));
  queryClient.setQueryData(overviewQuery.queryKey, [team("beans"), team("peas")]);
  const wrapper = ({ children }: { children: ReactNode }) => createElement(QueryClientProvider, { client: queryClient }, children);
  const { result } = renderHook(() => useSave("peas"), { wrapper });
  result.current.mutate({ muted_until: FOREVER });
  await waitFor(() => expect(queryClient.getQueryData(overviewQuery.queryKey)).toEqual([team("beans"), { ...team("peas"), muted_until: FOREVER }]));
});
