/** ItemList: one group of inbox items, each with a checkbox. */
import { Link } from "@tanstack/react-router";
import { AlarmClock, ChevronDown, CircleAlert, CircleSlash2, FileText, Flag, MessageCircleQuestion, Newspaper, ShieldQuestion } from "lucide-react";
import { useState } from "react";
import type { InboxRow } from "@/api/client";
import { cx } from "@/lib/cx";
import { fullTime, plural, shortTime } from "@/lib/format";
import { authorOf, collectedRows, labelOf, previewOf, titleOf } from "@/parts/entries";
import type { Tone } from "@/ui";

const ICONS: Partial<Record<InboxRow["message"]["kind"], typeof FileText>> = { question: MessageCircleQuestion, approval: ShieldQuestion, briefing: Newspaper, report: FileText, result: Flag, failure: CircleAlert };
/** The icon of an item. A task that stopped with something to show is no failure. */
export const iconOf = (item: InboxRow): typeof FileText => (item.message.kind === "failure" && labelOf(item).tone !== "fail" ? CircleSlash2 : (ICONS[item.message.kind] ?? FileText));
const ICON_TONES: Record<Tone, string> = { plain: "text-ink-3", work: "text-work", done: "text-done", wait: "text-wait", fail: "text-fail" };

interface Props {
  name: string;
  items: readonly InboxRow[];
  chosen: string | null;
  selected: ReadonlySet<string>;
  /** Whether the items are in sight; else they are snoozed or archived. */
  isInbox: boolean;
  onSelect: (id: string, isRange: boolean) => void;
}

export function ItemGroup({ name, items, chosen, selected, isInbox, onSelect }: Props) {
  if (items.length === 0) return null;
  return (
    <section aria-label={name}>
      <h2 className="px-4 pt-3 pb-1 text-xs font-semibold text-ink-2">{name}</h2>
      <ul>
        {collectedRows(items).map((row) => (Array.isArray(row) ? <CollectedRow key={row[0]!.message.team_id} items={row} {...{ chosen, selected, isInbox, onSelect }} /> : <ItemRow key={row.message.id} item={row} isOpen={chosen === row.message.id} isSelected={selected.has(row.message.id)} isInbox={isInbox} onSelect={onSelect} />))}
      </ul>
    </section>
  );
}

/** One row for the many questions of a team; pressed, it shows them, and each is answered by itself. */
function CollectedRow({ items, chosen, selected, isInbox, onSelect }: Omit<Props, "name">) {
  const [isUnfolded, setIsUnfolded] = useState(false);
  const isOpen = isUnfolded || items.some((item) => item.message.id === chosen);
  const authors = [...new Set(items.map(authorOf))];
  const named = authors.length > 2 ? `${authors.slice(0, 2).join(", ")} and ${authors.length - 2} more` : authors.join(" and ");
  return (
    <li className="bg-wait-bg">
      <button type="button" aria-expanded={isOpen} onClick={() => setIsUnfolded(!isOpen)} className="flex w-full cursor-pointer gap-3 py-2.5 pr-4 pl-11 text-left outline-offset-[-2px] hover:bg-hover">
        <MessageCircleQuestion className="mt-0.5 size-4 shrink-0 text-wait" aria-hidden />
        <span className="min-w-0 flex-1">
          <span className="block text-base leading-5 font-semibold">{plural(items.length, "question")}</span>
          <span dir="auto" className="block truncate text-xs text-ink-3">
            <bdi>{named}</bdi> · <bdi>{items[0]!.team_name}</bdi>
          </span>
        </span>
        <ChevronDown className={cx("mt-0.5 size-4 shrink-0 text-ink-3", isOpen && "rotate-180")} aria-hidden />
      </button>
      {isOpen && (
        <ul aria-label={`Questions of ${items[0]!.team_name}`}>
          {items.map((item) => (
            <ItemRow key={item.message.id} item={item} isOpen={chosen === item.message.id} isSelected={selected.has(item.message.id)} isInbox={isInbox} onSelect={onSelect} />
          ))}
        </ul>
      )}
    </li>
  );
}

function ItemRow({ item, isOpen, isSelected, isInbox, onSelect }: { item: InboxRow; isOpen: boolean; isSelected: boolean; isInbox: boolean; onSelect: Props["onSelect"] }) {
  const { message } = item;
  const Icon = iconOf(item);
  const label = labelOf(item);
  const title = titleOf(item);
  const isBack = isInbox && item.snoozed_until !== null && item.state === "unread";
  return (
    <li className={cx("relative flex", isOpen ? "bg-press" : isSelected ? "bg-work-bg hover:bg-hover" : item.needs_answer ? "bg-wait-bg hover:bg-hover" : "hover:bg-hover")}>
      {/* The label is the target: a finger needs more than the box. */}
      <label className="flex w-11 shrink-0 cursor-pointer items-start justify-center pt-3 pl-2">
        <input
          type="checkbox"
          data-select={message.id}
          aria-label={`Select ${title}`}
          checked={isSelected}
          onChange={(event) => onSelect(message.id, (event.nativeEvent as MouseEvent).shiftKey === true)}
          className="size-4"
        />
      </label>
      <Link to="/inbox/$item" params={{ item: message.id }} aria-current={isOpen ? "true" : undefined} className="flex min-w-0 flex-1 gap-3 py-2.5 pr-4 outline-offset-[-2px]">
        {item.state === "unread" && <span role="img" aria-label="Unread" className="absolute top-[18px] left-1 size-1.5 rounded-full bg-ink" />}
        <Icon className={cx("mt-0.5 size-4 shrink-0", ICON_TONES[label.tone])} aria-label={label.text} />
        <span className="min-w-0 flex-1">
          <span className="flex items-baseline gap-2">
            <span dir="auto" className={cx("min-w-0 flex-1 truncate text-base leading-5", item.state === "unread" ? "font-semibold" : "font-medium")}>
              {title}
            </span>
            <time className="tabular text-xs text-ink-3" dateTime={message.created_at} title={fullTime(message.created_at)}>
              {shortTime(message.created_at)}
            </time>
          </span>
          <span dir="auto" className="block truncate text-xs text-ink-3">
            {label.tone !== "plain" && !item.needs_answer && <span className={cx("font-medium", ICON_TONES[label.tone])}>{label.text} · </span>}
            <bdi>{authorOf(item)}</bdi> · <bdi>{item.team_name}</bdi>
          </span>
          {previewOf(item) !== "" && <span dir="auto" className="line-clamp-2 text-sm text-ink-2">{previewOf(item)}</span>}
          {item.snoozed_until !== null && (isBack || !isInbox) && (
            <span className="mt-0.5 flex items-center gap-1.5 text-xs text-ink-2">
              <AlarmClock className="size-3.5" aria-hidden /> {isBack ? "Back from a snooze" : `Until ${fullTime(item.snoozed_until)}`}
            </span>
          )}
        </span>
      </Link>
    </li>
  );
}
