/** WaitingReason: why a task waits, in words for the person. The server writes it for agents, with ids, and calls the person “the human”. */
export const waitingReason = (reason: string): string =>
  reason
    .replace(/^asked the human\b/, "asked you")
    .replace(/^stage (['"])(.+)\1(?=$|, done again$)/, (_, _quote, name: string) => `for the stage “${name.replaceAll("\\'", "'")}”`)
    .replace(/^your (?=question ['"])/, "an answer to its ")
    .replace(/ \(node_[0-9a-z]+\)/g, "");

/** A reason that names work or an answer, and is no sentence. The name of an agent before a title is one word. */
const NAMED = /^(the result of|a review of|your question)\b|^(?!asked |needs )[^\n]* \(node_[0-9a-z]+\)|^[\w-]+: /;

/** Return the reason as it goes on after “waits”: “for robin: The list”. One that is a sentence follows a colon. */
export function waitDetail(reason: string): string {
  const words = waitingReason(reason).replace(/^waiting (?=for )/, "").replace(/^needs (?=a decision\b)/, "for ");
  return NAMED.test(reason) ? `for ${words}` : words;
}

/** Return what stands between “waits” and a detail. */
export const waitJoint = (detail: string): string => (detail === "" || detail.startsWith("for ") ? " " : ": ");

/** Return what a task or its agent does while it waits, as the words after its name: “asked you: Which?”, “waits for robin: The list”. */
export function waitText(reason: string): string {
  const detail = waitDetail(reason);
  return detail.startsWith("asked you") ? detail : `waits${waitJoint(detail)}${detail}`.trim();
}
