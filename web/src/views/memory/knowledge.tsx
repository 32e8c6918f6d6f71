/** Parts of what is known: who said it, where it comes from, and how to take it back. */
import { Link } from "@tanstack/react-router";
import { type Agent, api, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { capital } from "@/lib/format";
import { screenHref } from "@/views";
import { tell, tellTrouble } from "@/views/shared/toast";

export type Change = Schemas["Change"];

export function whoWords(author: string, people: readonly Agent[]): string {
  if (author === "human") return "You";
  if (author === "system") return "agiraph";
  const found = people.find((agent) => agent.id === author || agent.name === author);
  return found ? capital(found.name) : author;
}

/** Threads can be looked into; messages stand in the inbox; everything else is named. */
export function Source({ team, id }: { team: string; id: string }) {
  const look = "inline-flex min-h-6 items-center underline decoration-line-2 underline-offset-2 hover:decoration-ink";
  const thread = /^t_/.test(id) ? screenHref(team, "threads", id) : null;
  if (thread) {
    return (
      <Link to={thread as "/"} className={look}>
        the thread it comes from
      </Link>
    );
  }
  if (/^m(sg|essage)?_/.test(id)) return <span>something said in a conversation</span>;
  return <span className="break-all">{id}</span>;
}

export function refresh(): void {
  for (const key of ["insights", "memories", "changes", "held"]) void queryClient.invalidateQueries({ queryKey: [key] });
}

export async function undo(change: string): Promise<void> {
  try {
    await unwrap(api.POST("/api/changes/{change}/undo", { params: { path: { change } } }));
    refresh();
    tell("The change was undone.");
  } catch (error) {
    tellTrouble("The change could not be undone", error);
  }
}

/** The newest change that touched something, for an Undo beside it. */
export async function lastChange(agent: string, id: string): Promise<string | null> {
  const changes = await unwrap(api.GET("/api/agents/{agent}/changes", { params: { path: { agent }, query: { limit: 500 } } }));
  return changes.findLast((change) => !change.undone_at && change.touched.some((one) => one.id === id))?.id ?? null;
}

export function tellRemoved(agent: string, id: string, words: string): void {
  lastChange(agent, id).then(
    (change) => tell(words, change ? () => void undo(change) : undefined),
    () => tell(words),
  );
}
