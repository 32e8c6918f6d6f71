/** ConversationSearch: searches all messages of a conversation on the server, and the loaded steps of its work. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Message } from "@/api/client";
import { conversationQuery, foundMessagesQuery, isSearchable } from "@/api/queries";
import { isComposing } from "@/lib/composing";
import { useLive } from "@/live";
import type { Row } from "@/live/log";
import { useShell } from "@/parts/shellState";
import { useSettledText } from "@/parts/useSettledText";
import { Button, IconButton } from "@/ui";

interface Props {
  agentId: string;
  teamId: string;
  onFound: (key: string | undefined, words: string[]) => void;
  onClose: () => void;
}

export default function ConversationSearch({ agentId, teamId, onFound, onClose }: Props) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState<string | undefined>();
  const input = useRef<HTMLInputElement>(null);
  const text = typed.trim();
  const settled = useSettledText(text);
  const search = useInfiniteQuery(foundMessagesQuery(agentId, settled));
  const isSearching = text !== settled || search.isFetching;
  const words = useMemo(() => (isSearchable(text) ? text.toLowerCase().split(/\s+/) : []), [text]);
  const found = useMemo(() => (text === settled ? search.data?.pages.flat() : undefined), [text, settled, search.data]);
  const hits = useHits({ agentId, teamId, words, found, hasOlder: search.hasNextPage });
  const position = Math.max(0, hits.indexOf(chosen ?? ""));
  const hit = hits[position];
  useEffect(() => onFound(hit, words), [hit, words, onFound]);
  useEffect(() => input.current?.focus(), []);
  const { hasNextPage, isFetching, fetchNextPage } = search;
  const isLast = position >= hits.length - 1;
  useEffect(() => {
    if (isLast && hasNextPage && !isFetching) void fetchNextPage();
  }, [isLast, hasNextPage, isFetching, fetchNextPage]);
  const step = (offset: number) => {
    const isBeyond = position + offset < 0 || position + offset >= hits.length;
    // Around the ends only when both are known.
    if (!isBeyond || !hasNextPage) setChosen(hits[(position + offset + hits.length) % hits.length]);
  };
  return (
    <search className="flex min-h-11 shrink-0 items-center gap-2 border-b border-line bg-sunken px-4">
      <input dir="auto"
        ref={input}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setChosen(undefined);
        }}
        onKeyDown={(event) => {
          if (isComposing(event.nativeEvent)) return;
          if (event.key === "Escape") onClose();
          if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
        }}
        aria-label="Search in this conversation"
        placeholder="Search in this conversation…"
        className="h-8 min-w-0 flex-1 bg-transparent text-sm outline-offset-[-2px]"
      />
      <span role="status" className="tabular text-xs text-ink-3">
        {words.length === 0 ? "" : hits.length > 0 ? `${position + 1} of ${hits.length}${search.isError ? " loaded" : hasNextPage || isSearching ? "+" : ""}` : isSearching ? "Searching…" : search.isError ? "The search failed" : "Nothing found"}
      </span>
      {words.length > 0 && hits.length === 0 && !isSearching && (
        <Button size="sm" onClick={() => useShell.getState().update({ paletteText: text, palette: true })}>
          Search everything
        </Button>
      )}
      <IconButton label="Older" onClick={() => step(1)} disabled={hits.length === 0}>
        <ChevronUp className="size-4" />
      </IconButton>
      <IconButton label="Newer" onClick={() => step(-1)} disabled={hits.length === 0}>
        <ChevronDown className="size-4" />
      </IconButton>
      <IconButton label="Close search" onClick={onClose}>
        <X className="size-4" />
      </IconButton>
    </search>
  );
}

interface Sought {
  agentId: string;
  teamId: string;
  /** In lower case; none if nothing is searched. */
  words: string[];
  /** The messages that the server has found, if it has answered. */
  found: Message[] | undefined;
  /** Whether the server would find older ones. */
  hasOlder: boolean;
}

const isIn = (text: string, words: string[]): boolean => words.every((word) => text.toLowerCase().includes(word));
/** The row that shows a message: an answer stands in the card of its question. */
const rowOf = (message: Message): string => (message.kind === "answer" && message.in_reply_to ? message.in_reply_to : message.id);
const textOf = (row: Row): string => (row.kind === "tools" ? "" : row.kind === "system" ? `${row.text} ${row.detail}` : row.text);

/** Return the keys of the rows that hold all words, newest first. */
function useHits({ agentId, teamId, words, found, hasOlder }: Sought): string[] {
  const loaded = useQuery(conversationQuery(agentId)).data?.messages;
  const rows = useLive((state) => state.logs[teamId]?.rowsByAgent[agentId]);
  return useMemo(() => {
    if (words.length === 0) return [];
    const times = new Map<string, number>();
    for (const one of found ?? []) times.set(rowOf(one), Date.parse(one.created_at));
    for (const one of loaded?.toReversed() ?? []) if (isIn(`${one.title} ${one.text}`, words)) times.set(rowOf(one), Date.parse(one.created_at));
    for (const row of rows?.toReversed() ?? []) if (row.kind !== "tools" && isIn(textOf(row), words)) times.set(row.key, Date.parse(row.at));
    // What is older than the found messages waits until those between are known, too.
    const oldest = hasOlder ? Math.min(...(found ?? []).map((one) => Date.parse(one.created_at))) : -Infinity;
    return [...times].filter(([, at]) => at >= oldest).sort((a, b) => b[1] - a[1]).map(([key]) => key);
  }, [words, found, hasOlder, loaded, rows]);
}
