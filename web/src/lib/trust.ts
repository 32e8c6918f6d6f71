/** Trust: what a team may do by itself after it has read untrusted text, in words. */
import type { components } from "@/api/types";

export type Trust = components["schemas"]["TeamView"]["trust"];

/** Each trust with its name in a list and a sentence about it. */
export const TRUSTS: readonly (readonly [Trust, string, string])[] = [
  ["strict", "Strict: asks before almost everything", "After it has read text from outside sources, it asks you before it searches or follows a link."],
  ["standard", "Standard: reads and learns by itself", "After it has read text from outside sources, it still searches, reads, plans and keeps notes, within limits. It asks before anything else leaves the team."],
  ["open", "Open: for containers only", "It runs commands with network access without asking. A page that it reads can make it send what it knows anywhere."],
];
