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

/** Return the sources without these files. The server writes the name of a file in one line, without control characters, and cuts it. */
export function withoutFiles(sources: readonly string[], names: readonly string[]): string[] {
  const own = new Set(names.map((name) => `file:${[...name.trim().replace(/\s+/g, " ").replace(/(?! )[\p{C}\p{Z}]/gu, "")].slice(0, MAX_FILE_NAME).join("") || "unnamed"}`));
  return sources.filter((source) => !own.has(source));
}
const MAX_FILE_NAME = 60;

const UPLOADS = "user_uploads/";
/** Whether a path of Files is that of a file that a person uploaded or attached. */
export const isUploaded = (path: string): boolean => path.startsWith(UPLOADS);
