/** Consulted: what a reply has read, from calls such as `look_into(bob)`, in words and with the place to look at it. */
import { capitalize } from "@/lib/format";

export interface Source {
  text: string;
  /** A task, an item of the inbox or a file that can be opened; null if there is none. */
  node: string | null;
  item: string | null;
  file: string | null;
}

const NOUNS: Record<string, (what: string) => string> = {
  look_into: (what) => (what.startsWith("“") ? `the work ${what}` : `the work of ${capitalize(what)}`),
  read_report: (what) => `the report ${what}`,
  search: (what) => `a search for “${what}”`,
  read_file: (what) => what,
  list_files: (what) => `the files in ${what || "the team's folder"}`,
  check_board: () => "the board",
  job_status: () => "the state of the work",
  list_triggers: () => "the triggers",
  list_insights: () => "the insights",
};

/** Whether a call of this tool only reads; a reply names it among what it has read. */
export const isReading = (tool: string): boolean => tool in NOUNS;

/** Return one call in words. `titleOf` knows the titles of some tasks. */
export function describeConsulted(call: string, titleOf: (node: string) => string | undefined): Source {
  const [, tool = "", what = ""] = /^(\w+)\((.*)\)$/s.exec(call) ?? [];
  const node = what.startsWith("node_") ? what : null;
  const item = what.startsWith("msg_") ? what : null;
  const title = node && titleOf(node);
  const named = title ? `“${title}”` : what;
  return { text: NOUNS[tool]?.(named) ?? call, node, item, file: tool === "read_file" && what ? what : null };
}
