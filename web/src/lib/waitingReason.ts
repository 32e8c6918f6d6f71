/** WaitingReason: why a task waits, in words for the person. The server writes it for agents, with ids, and calls the person “the human”. */
export const waitingReason = (reason: string): string =>
  reason
    .replace(/^asked the human\b/, "asked you")
    .replace(/^stage (['"])(.+)\1(?=$|, done again$)/, (_, _quote, name: string) => `for the stage “${name.replaceAll("\\'", "'")}”`)
    .replace(/ \(node_[0-9a-z]+\)/g, "");
