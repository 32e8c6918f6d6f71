/** ConversationSearch: search in the loaded part of a conversation. */
import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { conversationQuery } from "@/api/queries";
import { useLive } from "@/live";
import type { Row } from "@/live/log";
import { IconButton } from "@/ui";

const searchableText = (row: Row): string => (row.kind === "tools" ? row.calls.map((call) => `${call.name} ${call.text}`).join(" ") : row.kind === "system" ? `${row.text} ${row.detail}` : row.text);

export default function ConversationSearch({ agentId, teamId, onFound, onClose }: { agentId: string; teamId: string; onFound: (key: string | undefined) => void; onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [position, setPosition] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const conversation = useQuery(conversationQuery(agentId));
  const rows = useLive((state) => state.logs[teamId]?.rowsByAgent[agentId]);
  const hits = useMemo(() => {
    const needle = query.trim().toLowerCase();
    if (needle.length < 2) return [];
    const found = new Map<string, number>();
    for (const one of conversation.data?.messages ?? []) if (one.text.toLowerCase().includes(needle)) found.set(one.id, Date.parse(one.created_at));
    for (const row of rows ?? []) if (row.kind !== "tools" && searchableText(row).toLowerCase().includes(needle)) found.set(row.key, Date.parse(row.at));
    return [...found].sort((a, b) => b[1] - a[1]).map(([key]) => key);
  }, [query, conversation.data, rows]);
  useEffect(() => setPosition(0), [query]);
  const hit = hits[position];
  useEffect(() => onFound(hit), [hit, onFound]);
  useEffect(() => input.current?.focus(), []);
  const step = (offset: number) => hits.length > 0 && setPosition((position + offset + hits.length) % hits.length);
  return (
    <search className="flex h-11 shrink-0 items-center gap-2 border-b border-line bg-sunken px-4">
      <input dir="auto"
        ref={input}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
        }}
        aria-label="Search in this conversation"
        placeholder="Search in this conversation…"
        className="h-8 min-w-0 flex-1 bg-transparent text-sm outline-offset-[-2px]"
      />
      <span role="status" className="tabular text-xs text-ink-3">
        {query.trim().length < 2 ? "" : hits.length === 0 ? "Nothing found in the loaded part" : `${position + 1} of ${hits.length}`}
      </span>
      <IconButton label="Older" onClick={() => step(1)}>
        <ChevronUp className="size-4" />
      </IconButton>
      <IconButton label="Newer" onClick={() => step(-1)}>
        <ChevronDown className="size-4" />
      </IconButton>
      <IconButton label="Close search" onClick={onClose}>
        <X className="size-4" />
      </IconButton>
    </search>
  );
}
