/** Seen: what this browser has shown, kept so that a page that is opened while the server is away shows it again. */
import { dehydrate, type DehydratedState, hydrate, type QueryClient } from "@tanstack/react-query";
import { keptStore } from "@/live/kept";

interface Seen {
  id: "seen";
  state: DehydratedState;
}

const { run } = keptStore("agiraph-seen", "seen", "id");

export async function keepSeen(client: QueryClient): Promise<void> {
  const state = dehydrate(client, { shouldDehydrateQuery: ({ state: { status } }) => status === "success", shouldDehydrateMutation: () => false });
  await run("readwrite", (store) => store.put({ id: "seen", state } satisfies Seen));
}

/** Show what was kept. Return whether there was anything. */
export async function showSeen(client: QueryClient): Promise<boolean> {
  const kept = await run("readonly", (store) => store.get("seen") as IDBRequest<Seen | undefined>);
  if (!kept?.result) return false;
  await client.cancelQueries();
  hydrate(client, kept.result.state);
  return true;
}

export const forgetSeen = async (): Promise<void> => void (await run("readwrite", (store) => store.clear()));
