/** Unanswered: the questions and requests that the person has not answered yet. All badges and lists use this module, so that their numbers and their order agree. */
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useMemo } from "react";
import { create } from "zustand";
import type { InboxRow } from "@/api/client";
import { openQuery } from "@/api/queries";
import { isFinished } from "@/lib/endings";

/** Whether the task that asked has ended: nobody waits for the answer any more. */
export const isLate = ({ needs_answer, node_status }: Pick<InboxRow, "needs_answer" | "node_status">): boolean => needs_answer && node_status !== null && isFinished(node_status);

/** Return those of these items that are not answered; what nobody waits for any more comes last. */
export const unansweredItems = (items: readonly InboxRow[] | undefined): InboxRow[] => (items ?? []).filter((item) => item.needs_answer).sort((a, b) => Number(isLate(a)) - Number(isLate(b)));

/** Return what the person has not answered. Of very many questions, those of all teams may not be loaded, but those of this team are. */
export function useOpenItems(team = ""): InboxRow[] {
  const all = useQuery(openQuery()).data;
  const own = useQuery({ ...openQuery(team), enabled: team !== "" && all !== undefined && all.cursor !== null }).data;
  return useMemo(() => unansweredItems([...new Map([...(all?.items ?? []), ...(own?.items ?? [])].map((row) => [row.message.id, row])).values()]), [all, own]);
}

/** Return what the members of one team ask the person, oldest first. */
export function useTeamQuestions(team: string): InboxRow[] {
  return useOpenItems(team).filter((item) => item.message.team_id === team || item.waiting_work.some((work) => work.team_id === team));
}

/** The questions whose cards are on screen. What points at one of them is not shown beside it: each question stands once. */
export const useQuestionsInView = create<{ ids: ReadonlySet<string> }>(() => ({ ids: new Set() }));

function setInView(id: string, isInView: boolean): void {
  const { ids } = useQuestionsInView.getState();
  if (ids.has(id) !== isInView) useQuestionsInView.setState({ ids: new Set(isInView ? [...ids, id] : [...ids].filter((one) => one !== id)) });
}

/** Note while the card of a question is on screen. */
export function useNoteInView(id: string, card: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    if (!card.current) return;
    // The last entry is the newest.
    const observer = new IntersectionObserver((entries) => setInView(id, entries.at(-1)!.isIntersecting));
    observer.observe(card.current);
    return () => {
      observer.disconnect();
      setInView(id, false);
    };
  }, [id, card]);
}

/** Whether a task waits for the answer to this question. */
export const isAskedBy = ({ message, waiting_work }: InboxRow, node: string): boolean => message.node_id === node || waiting_work.some((work) => work.node_id === node);

/** Return the question after the one that the page at `href` shows. If the page shows none of these, it is the first one of the agent whose page it is, else the first of all. */
export function questionAfter(href: string, items: readonly InboxRow[]): InboxRow | undefined {
  const shown = items.findIndex((item) => href.includes(item.message.id));
  if (shown >= 0) return items[(shown + 1) % items.length];
  return items.find((item) => href.includes(item.message.sender) && isLate(item) === isLate(items[0]!)) ?? items[0];
}
