/** Needs: what waits for the person's word. Badges and lists all ask here, so that they never disagree. */
import type { InboxItem } from "@/api/client";

export const unansweredItems = (items: InboxItem[] | undefined): InboxItem[] => (items ?? []).filter((item) => item.needs_answer);
