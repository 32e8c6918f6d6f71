/** NoticeText: a notice about a model in the colour of its weight, and advice with commands in it. */
import { useQuery } from "@tanstack/react-query";
import { cx } from "@/lib/cx";
import { modelsQuery } from "@/views/models/modelsQuery";
import { type Notice, noticeOf } from "@/views/models/notice";
import { SetUpLink } from "@/views/models/SetUpLink";

const COLOURS = { plain: "text-ink-2", wait: "text-wait", fail: "text-fail" };
export const NoticeText = ({ id, notice, className }: { id?: string; notice: Notice; className?: string }) => (
  <p id={id} role="status" className={cx("text-xs font-normal break-words", COLOURS[notice.tone], className)}>
    <Advice text={notice.text} />
  </p>
);

/** A sentence with commands in backticks, which are shown as code. */
export const Advice = ({ text }: { text: string }) => text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at} className="rounded-xs bg-sunken px-1 py-0.5 text-[0.92em]">{part}</code> : part));

/** What keeps a chosen model from its work, with the way to set up another one. Nothing for one that is fit. */
export function ModelNotice({ chosen, className }: { chosen: string; className?: string }) {
  const { data } = useQuery(modelsQuery);
  const notice = noticeOf(data, chosen);
  if (!notice || notice.tone === "plain") return null;
  return (
    <div className={className}>
      <NoticeText notice={notice} />
      {!chosen.trim() && <SetUpLink className="text-xs font-medium" />}
    </div>
  );
}
