/** The inbox items that wait for the person's answer. All badges and lists use this function, so that their numbers agree. */
import type { InboxItem } from "@/api/client";

export const unansweredItems = (items: InboxItem[] | undefined): InboxItem[] => (items ?? []).filter((item) => item.needs_answer);
