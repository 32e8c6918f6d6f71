/** Documents: the texts of a team that a person may change, and the requests that save and list them. The server decides; this only hides buttons. */
import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, toApiError, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { fetchApi } from "@/api/session";
import { decodeText } from "@/views/files/fileQuery";

export type Version = Schemas["FileVersionView"];

const TEAM_FILES = new Set(["SOUL.md", "GOAL.md", "PLAN.md", "MEMORY.md"]);
const AGENT_FILES = new Set(["IDENTITY.md", "MEMORY.md", "NOTEBOOK.md"]);
const OF_THE_RUNTIME = new Set(["index.md", "archive", "unverified"]);

export function isEditable(path: string): boolean {
  const [top, ...below] = path.split("/");
  if (below.length === 0) return TEAM_FILES.has(top!);
  if (top === "user_uploads") return below.length === 1;
  if (top === "agents" && below.length === 2) return AGENT_FILES.has(below[1]!);
  const note = top === "memory" ? below : top === "agents" && below[1] === "memory" ? below.slice(2) : [];
  return note.length > 0 && !OF_THE_RUNTIME.has(note[0]!) && note.at(-1)!.endsWith(".md");
}

export const versionsQuery = (team: string, path: string) =>
  queryOptions({ queryKey: ["versions", team, path], queryFn: () => unwrap(api.GET("/api/teams/{team}/versions", { params: { path: { team }, query: { path } } })) });

export const versionQuery = (team: string, path: string, version: string) =>
  queryOptions({
    queryKey: ["version", team, path, version],
    staleTime: Infinity,
    queryFn: async () => {
      const query = new URLSearchParams({ path });
      const response = await fetchApi(`/api/teams/${encodeURIComponent(team)}/versions/${encodeURIComponent(version)}?${query.toString()}`);
      if (!response.ok) throw toApiError(response.status, await response.json().catch(() => null));
      return decodeText(new Uint8Array(await response.arrayBuffer()));
    },
  });

/** Save a text. `expected` is the hash of the content that was changed; the server refuses if it is another one by now. */
export async function saveText(team: string, path: string, text: string, expected: string): Promise<Schemas["SavedView"]> {
  const saved = await unwrap(api.PUT("/api/teams/{team}/files/{path}", { params: { path: { team, path } }, body: { text, expected } }));
  await refreshFiles(team);
  return saved;
}

/** Bring an earlier version of a file back, byte for byte. */
export async function restoreVersion(team: string, path: string, version: string, expected: string): Promise<Schemas["SavedView"]> {
  const saved = await unwrap(api.POST("/api/teams/{team}/versions/{version}/restore", { params: { path: { team, version } }, body: { path, expected } }));
  await refreshFiles(team);
  return saved;
}

export async function refreshFiles(team: string): Promise<void> {
  await Promise.all([["files", team], ["versions", team], ["memory", team], queryKeys.teams].map((queryKey) => queryClient.invalidateQueries({ queryKey })));
}
