/** Sources: who wrote the words of an item, from a label such as `page:docs.python.org`, in words. */

const KINDS: Record<string, (name: string) => string> = {
  page: (name) => (name ? `a page of ${name}` : "a saved page"),
  file: (name) => `the file ${name}`,
  network: (name) => (name && name !== "unknown" ? `the network (${name})` : "the network"),
  program: (name) => `the program ${name}`,
  mcp: (name) => `the MCP server ${name}`,
  search: () => "a web search",
  hook: () => "a webhook's caller",
  unknown: () => "an unknown source",
};

/** Return one source in words; one of a kind that this page does not know, as it is. */
export function sourceName(source: string): string {
  const [kind = "", ...name] = source.split(":");
  return KINDS[kind]?.(name.join(":")) ?? source;
}

/** Return the sources as a list in words, such as "a web search and a page of example.org". */
export function describeSources(sources: readonly string[]): string {
  const names = sources.map(sourceName);
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
