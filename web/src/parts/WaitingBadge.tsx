/** WaitingBadge: one number for the person: the questions that they have not answered, or without any the items that they have not read. Its name and its tooltip say which. */
import { plural } from "@/lib/format";
import { Badge } from "@/ui";

export function WaitingBadge({ questions, unread }: { questions: number; unread: number }) {
  if (questions === 0) return <Badge n={unread} label={`${unread} unread`} />;
  return <Badge n={questions} isUrgent label={`${plural(questions, "open question")}${unread > 0 ? `; ${unread} unread in all` : ""}`} />;
}
