/** Unanswered: the questions and requests that the person has not answered yet. All badges and lists use this module, so that their numbers and their order agree. */
import type { InboxItem } from "@/api/client";
import { isFinished } from "@/lib/endings";

/** Whether the task that asked has ended: nobody waits for the answer any more. */
export const isLate = ({ needs_answer, node_status }: Pick<InboxItem, "needs_answer" | "node_status">): boolean => needs_answer && node_status !== null && isFinished(node_status);

/** Return those of these items that are not answered; what nobody waits for any more comes last. */
export const unansweredItems = (items: InboxItem[] | undefined): InboxItem[] => (items ?? []).filter((item) => item.needs_answer).sort((a, b) => Number(isLate(a)) - Number(isLate(b)));
