/** Participants: the two senders and recipients of messages that are not agents. The server uses the same ids. */
import type { components } from "@/api/types";
import { capitalize } from "@/lib/format";

/** The id under which the person sends and receives messages. */
export const HUMAN = "human";
/** The id of agiraph itself, as the sender of notices. */
export const SYSTEM = "system";

/** Return who asked for a task, in words for the person who reads it. */
export function requestedBy({ creator, creator_id: id, source }: Pick<components["schemas"]["NodeDetail"], "creator" | "creator_id" | "source">): string {
  const who = id === HUMAN ? "You" : id === SYSTEM ? "agiraph" : capitalize(creator);
  if (source === "trigger") return `${who}, by a trigger`;
  return source === "self" && id !== HUMAN ? `${who}, by itself` : who;
}
