/** Team questions: what the members of one team ask the person, oldest first; those that nobody waits for any more come last. */
import { useQuery } from "@tanstack/react-query";
import type { InboxItem } from "@/api/client";
import { inboxQuery } from "@/api/queries";
import { isLate } from "@/inbox/entries";
import { unansweredItems } from "@/shell/unanswered";

export function useTeamQuestions(team: string): InboxItem[] {
  const { data } = useQuery(inboxQuery);
  const questions = unansweredItems(data?.items).filter((item) => item.message.team_id === team);
  return questions.sort((a, b) => Number(isLate(a)) - Number(isLate(b)));
}
