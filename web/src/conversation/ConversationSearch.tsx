/** Finder: search in what was said and done here, as far as it is loaded. */
import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { conversationQuery } from "@/api/queries";
import { useLive } from "@/live";
import type { Row } from "@/live/log";
import { IconButton } from "@/ui";

const wordsOf = (row: Row): string => (row.kind === "tools" ? row.calls.map((call) => `${call.name} ${call.text}`).join(" ") : row.kind === "system" ? `${row.words} ${row.detail}` : row.text);

export function Finder({ agentId, teamId, onFound, onClose }: { agentId: string; teamId: string; onFound: (key: string | undefined) => void; onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  const conversation = useQuery(conversationQuery(agentId));
  const rows = useLive((state) => state.logs[teamId]?.threads[agentId]);
  const hits = useMemo(() => {
    const wanted = query.trim().toLowerCase();
    if (wanted.length < 2) return [];
    const found = new Map<string, number>();
    for (const one of conversation.data?.said ?? []) if (one.text.toLowerCase().includes(wanted)) found.set(one.id, Date.parse(one.created_at));
    for (const row of rows ?? []) if (row.kind !== "tools" && wordsOf(row).toLowerCase().includes(wanted)) found.set(row.key, Date.parse(row.at));
    return [...found].sort((a, b) => b[1] - a[1]).map(([key]) => key);
  }, [query, conversation.data, rows]);
  useEffect(() => setAt(0), [query]);
  const hit = hits[at];
  useEffect(() => onFound(hit), [hit, onFound]);
  useEffect(() => box.current?.focus(), []);
  const go = (step: number) => hits.length > 0 && setAt((at + step + hits.length) % hits.length);
  return (
    <search className="flex h-11 shrink-0 items-center gap-2 border-b border-line bg-sunken px-4">
      <input
        ref={box}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
        }}
        aria-label="Search in this conversation"
        placeholder="Search in this conversation…"
        className="h-8 min-w-0 flex-1 bg-transparent text-sm outline-none"
      />
      <span role="status" className="tabular text-xs text-ink-3">
        {query.trim().length < 2 ? "" : hits.length === 0 ? "Nothing found in what is loaded" : `${at + 1} of ${hits.length}`}
      </span>
      <IconButton label="Older" onClick={() => go(1)}>
        <ChevronUp className="size-4" />
      </IconButton>
      <IconButton label="Newer" onClick={() => go(-1)}>
        <ChevronDown className="size-4" />
      </IconButton>
      <IconButton label="Close search" onClick={onClose}>
        <X className="size-4" />
      </IconButton>
    </search>
  );
}
