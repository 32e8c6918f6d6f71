/** RequestedBy: who asked for a task, in words for the person who reads it. */
import type { Schemas } from "@/api/client";
import { capitalize } from "@/lib/format";
import { HUMAN, SYSTEM } from "@/lib/participants";

export function requestedBy({ creator, creator_id: id, source }: Pick<Schemas["NodeDetail"], "creator" | "creator_id" | "source">): string {
  const who = id === HUMAN ? "You" : id === SYSTEM ? "agiraph" : capitalize(creator);
  if (source === "trigger") return `${who}, by a trigger`;
  return source === "self" && id !== HUMAN ? `${who}, by itself` : who;
}
