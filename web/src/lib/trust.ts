/** Trust: what a team may do by itself after it has read strangers' words, in words. */
import type { Team } from "@/api/client";

export type Trust = Team["trust"];

/** Each trust with its name in a list and a sentence about it. */
export const TRUSTS: readonly (readonly [Trust, string, string])[] = [
  ["strict", "Strict: asks before almost everything", "It asks you before it searches or follows links once it has read a page."],
  ["standard", "Standard: reads and learns by itself", "It searches, reads, plans and notes by itself, and asks before anything else leaves the team."],
  ["open", "Open: for containers only", "It runs commands with network by itself and may send what it knows wherever a page tells it to."],
];
