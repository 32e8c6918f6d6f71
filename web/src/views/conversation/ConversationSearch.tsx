/** ConversationSearch: searches all messages of a conversation, and the steps of the work that are loaded. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Message } from "@/api/client";
import { conversationQuery, foundMessagesQuery } from "@/api/queries";
import { isComposing } from "@/lib/composing";
import { useLive } from "@/live";
import type { Row } from "@/live/log";
import { useShell } from "@/parts/shellState";
import { useSettledText } from "@/parts/useSettledText";
import { Button, IconButton } from "@/ui";

/** A place of the conversation that holds the words: the key of its row, or the id of its message. */
interface Hit {
  key: string;
  at: number;
}

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
  const hits = useHits(agentId, teamId, text, text === settled ? search.data : undefined, search.hasNextPage);
  const position = Math.max(0, hits.findIndex((hit) => hit.key === chosen));
  const hit = hits[position]?.key;
  useEffect(() => onFound(hit, text.toLowerCase().split(/\s+/)), [hit, text, onFound]);
  useEffect(() => input.current?.focus(), []);
  const step = async (offset: number) => {
    let known = hits;
    // The oldest one that is known: there are older ones.
    if (position + offset === hits.length && search.hasNextPage) known = hitsOf((await search.fetchNextPage()).data?.pages.flat() ?? []);
    const after = offset > 0 ? known.filter((one) => hits[position] && one.at <= hits[position].at && one.key !== hit) : [];
    setChosen(known === hits ? hits[(position + offset + hits.length) % hits.length]?.key : after[0]?.key);
  };
  return (
    <search className="flex h-11 shrink-0 items-center gap-2 border-b border-line bg-sunken px-4">
    </search>
  );
}
