/** Knowledge: what the memory tabs share: author, source, cache invalidation and undo. */
import { Link } from "@tanstack/react-router";
import { type Agent, api, type Schemas, unwrap } from "@/api/client";
import { invalidateKnowledge } from "@/api/queries";
import { capitalize } from "@/lib/format";
import { HUMAN, SYSTEM } from "@/lib/participants";
import { screenHref } from "@/lib/screens";
import { showToast, showError } from "@/parts/toast";

export type Change = Schemas["Change"];

export function authorName(author: string, members: readonly Agent[]): string {
  if (author === HUMAN) return "You";
  if (author === SYSTEM) return "agiraph";
  const found = members.find((agent) => agent.id === author || agent.name === author);
  return found ? capitalize(found.name) : author;
}

/** The source of an item: a link to its thread, a note for a message, or the id itself. */
export function SourceLink({ team, id }: { team: string; id: string }) {
  const linkStyle = "inline-flex min-h-6 items-center underline decoration-line-2 underline-offset-2 hover:decoration-ink";
  const threadHref = /^t_/.test(id) ? screenHref(team, "threads", id) : null;
  if (threadHref) {
    return (
      <Link to={threadHref as "/"} className={linkStyle}>
        the thread it comes from
      </Link>
    );
  }
  if (/^m(sg|essage)?_/.test(id)) return <span>something said in a conversation</span>;
  return <span className="break-all">{id}</span>;
}

export async function undoChange(change: string): Promise<void> {
  try {
    await unwrap(api.POST("/api/changes/{change}/undo", { params: { path: { change } } }));
    invalidateKnowledge();
    showToast("The change was undone.");
  } catch (error) {
    showError("The change could not be undone", error);
  }
}

/** Return the newest change of an item that is not undone, for the Undo in its toast. */
async function lastChange(agent: string, id: string): Promise<string | null> {
  const changes = await unwrap(api.GET("/api/agents/{agent}/changes", { params: { path: { agent }, query: { limit: 500 } } }));
  return changes.findLast((change) => !change.undone_at && change.touched.some((one) => one.id === id))?.id ?? null;
}

/** Report a removal in a toast, with an Undo if its change is found. */
export function showRemoved(agent: string, id: string, text: string): void {
  lastChange(agent, id).then(
    (change) => showToast(text, change ? () => void undoChange(change) : undefined),
    () => showToast(text),
  );
}
