/** Seen: what this browser has shown, kept so that a page that is opened while the server is away shows it again. */
import type { QueryClient, QueryKey } from "@tanstack/react-query";
import { keptStore } from "@/live/kept";

interface Seen {
  id: "seen";
  queries: { key: QueryKey; data: unknown; at: number }[];
}

const { run } = keptStore("agiraph-seen", "seen", "id");

export async function keepSeen(client: QueryClient): Promise<void> {
  const known = client.getQueryCache().getAll().filter(({ state }) => state.data !== undefined);
  const queries = known.map(({ queryKey, state }) => ({ key: queryKey, data: state.data, at: state.dataUpdatedAt }));
  await run("readwrite", (store) => store.put({ id: "seen", queries } satisfies Seen));
}

/** Show what was kept. Return whether there was anything. */
export async function showSeen(client: QueryClient): Promise<boolean> {
  const kept = await run("readonly", (store) => store.get("seen") as IDBRequest<Seen | undefined>);
  if (!kept?.result) return false;
  await client.cancelQueries();
  for (const { key, data, at } of kept.result.queries) client.setQueryData(key, data, { updatedAt: at });
  return true;
}

export const forgetSeen = async (): Promise<void> => void (await run("readwrite", (store) => store.clear()));
