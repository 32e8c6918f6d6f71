/** Team questions: what the members of one team ask the person, oldest first; those that nobody waits for any more come last. */
import { useQuery } from "@tanstack/react-query";
import type { InboxItem } from "@/api/client";
import { inboxQuery } from "@/api/queries";
import { unansweredItems } from "@/shell/unanswered";

export function useTeamQuestions(team: string): InboxItem[] {
  const { data } = useQuery(inboxQuery);
  return unansweredItems(data?.items).filter((item) => item.message.team_id === team);
}
