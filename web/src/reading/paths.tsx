/** Paths: names of files in agents' texts as links, if the team has such a file. The server decides which one it is. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useContext, useEffect, useState } from "react";
import { fetchApi } from "@/api/session";
import { onNewEvents } from "@/live";
import { paused } from "@/live/invalidation";
import type { Event } from "@/live/log";
import { screenHref } from "@/lib/screens";
import { TextTeam } from "@/reading/textTeam";

const ENDINGS = "md|markdown|txt|csv|tsv|json|jsonl|ya?ml|toml|py|tsx?|jsx?|html?|css|sql|sh|png|jpe?g|gif|webp|svg|pdf|docx?|xlsx?|pptx?|zip|gz|log|xml|ipynb|parquet|diff|patch|rs|go|c|h|cpp|java|rb|tex|bib";
/** A name of a file in prose: only what ends like a file. */
const IN_PROSE = new RegExp(`(?<![\\w/.@:-])(?!www\\.)(?:[\\w][\\w.-]*/)*[\\w][\\w-]*(?:\\.[\\w-]+)*\\.(?:${ENDINGS})(?::\\d{1,6})?(?![\\w/@-])`, "gi");
/** A name of a file that stands as code: also a path without an ending. Nothing that hides or reorders characters. */
const AS_CODE = new RegExp(`^(?:\\./)?(?:[\\p{L}\\p{N}_][\\p{L}\\p{N}_. ()+-]*/)*[\\p{L}\\p{N}_][\\p{L}\\p{N}_. ()+-]*(?:\\.(?:${ENDINGS})(?::\\d{1,6})?|/)$`, "iu");
const MAX_LENGTH = 200;

/** Whether code, or the address of a link, may name a file of the team. */
export const mayBePath = (text: string): boolean => text.length <= MAX_LENGTH && !text.includes("..") && AS_CODE.test(text);

interface MarkdownNode {
  type: string;
  value?: string;
  url?: string;
  children?: MarkdownNode[];
}

/** A remark plugin: names of files in prose become links whose address is the name. */
export function linkPaths(node: MarkdownNode): void {
  if (!node.children || node.type === "link" || node.type === "linkReference") return;
  node.children = node.children.flatMap((child) => {
    if (child.type !== "text" || !child.value) {
      linkPaths(child);
      return [child];
    }
    return splitPaths(child.value);
  });
}

function splitPaths(text: string): MarkdownNode[] {
  const parts: MarkdownNode[] = [];
  let end = 0;
  for (const match of text.matchAll(IN_PROSE)) {
    if (match[0].length > MAX_LENGTH) continue;
    if (match.index > end) parts.push({ type: "text", value: text.slice(end, match.index) });
    parts.push({ type: "link", url: match[0], children: [{ type: "text", value: match[0] }] });
    end = match.index + match[0].length;
  }
  if (parts.length === 0) return [{ type: "text", value: text }];
  if (end < text.length) parts.push({ type: "text", value: text.slice(end) });
  return parts;
}

type Found = { path: string } | null;
const KEPT_MS = 20_000;
const MAX_PER_REQUEST = 50;
/** What the server said of each name; a name that was not found is asked for again after a while. */
const known = new Map<string, { found: Found; at: number }>();
let waiting = new Map<string, { team: string; text: string; resolve: (found: Found) => void }[]>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Return the file that a name means. Names that are drawn together are asked for in one request. */
function lookUp(team: string, text: string): Promise<Found> {
  const key = `${team}\n${text}`;
  const cached = known.get(key);
  if (cached && (cached.found || Date.now() - cached.at < KEPT_MS)) return Promise.resolve(cached.found);
  return new Promise((resolve) => {
    waiting.set(key, [...(waiting.get(key) ?? []), { team, text, resolve }]);
    timer ??= setTimeout(() => void ask(), 30);
  });
}

async function ask(): Promise<void> {
  const asked = waiting;
  waiting = new Map();
  timer = undefined;
  const firsts = [...asked.values()].map((all) => all[0]!);
  for (const team of new Set(firsts.map((one) => one.team))) {
    const names = firsts.filter((one) => one.team === team).map(({ text }) => text);
    for (let start = 0; start < names.length; start += MAX_PER_REQUEST) {
      const texts = names.slice(start, start + MAX_PER_REQUEST);
      const found = await request(team, texts);
      for (const text of texts) {
        const key = `${team}\n${text}`;
        const path = found?.get(text);
        const answer = path === undefined ? null : { path };
        if (found) known.set(key, { found: answer, at: Date.now() });
        for (const { resolve } of asked.get(key) ?? []) resolve(answer);
      }
    }
  }
}

async function request(team: string, texts: readonly string[]): Promise<Map<string, string> | null> {
  try {
    const query = new URLSearchParams(texts.map((text) => ["text", text]));
    const response = await fetchApi(`/api/teams/${encodeURIComponent(team)}/paths?${query.toString()}`);
    if (!response.ok) return null;
    return new Map(((await response.json()) as { text: string; path: string }[]).map(({ text, path }) => [text, path]));
  } catch {
    return null;
  }
}

/** The names that are drawn as plain text: each function asks for one of them again. */
const unfound = new Set<() => void>();
const ASK_AGAIN_MS = 1_000;
const askAgain = paused(() => {
  for (const [key, { found }] of known) if (!found) known.delete(key);
  for (const look of unfound) look();
}, ASK_AGAIN_MS);
/** Work that ends, and a message of it, may come with new files. */
const mayBringFiles = ({ type }: Event): boolean => type.startsWith("message.") || (type.startsWith("node.") && type !== "node.output");
onNewEvents((events) => void (unfound.size > 0 && events.some(mayBringFiles) && askAgain()));

/** Call `onFound` with the path of the file that a name means: at once, or when the team has made the file. Return a function that ends this. */
export function watchPath(team: string, text: string, onFound: (path: string) => void): () => void {
  const look = () =>
    void lookUp(team, text).then((found) => {
      if (found && unfound.delete(look)) onFound(found.path);
    });
  unfound.add(look);
  look();
  return () => void unfound.delete(look);
}

/** The team whose page this is. */
const pageTeam = (): string | null => /^\/t\/([^/]+)/.exec(location.pathname)?.[1] ?? null;

/** A name of a file: a link to it if the team has the file, otherwise the text as it is. */
export function PathLink({ text, children }: { text: string; children: ReactNode }) {
  const team = useContext(TextTeam) ?? pageTeam();
  const knownPath = () => (team && known.get(`${team}\n${text}`)?.found?.path) || null;
  const [path, setPath] = useState(knownPath);
  useEffect(() => {
    setPath(knownPath());
    return team ? watchPath(team, text, setPath) : undefined;
  }, [team, text]);
  if (!team || !path) return <>{children}</>;
  return (
    <Link to={screenHref(team, "files", path) as "/"} className="link" title={path}>
      {children}
    </Link>
  );
}
