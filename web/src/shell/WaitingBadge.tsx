/** WaitingBadge: one number for the person: the questions that wait for their answer, or without any the items that they have not read. Its name and its tooltip say which. */
import { plural } from "@/lib/format";
import { Badge } from "@/ui";

export function WaitingBadge({ questions, unread }: { questions: number; unread: number }) {
  if (questions === 0) return <Badge n={unread} label={`${unread} unread`} />;
  return <Badge n={questions} isUrgent label={`${plural(questions, "question waits", "questions wait")} for your answer${unread > 0 ? `; ${unread} unread in all` : ""}`} />;
}
