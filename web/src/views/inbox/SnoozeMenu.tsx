/** SnoozeMenu: a button that puts items off until a suggested moment, or until one that the person picks. */
import { AlarmClock } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button, Dialog, Input, Menu, MenuItem, MenuSeparator } from "@/ui";

const momentFormat = new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit" });

export function SnoozeMenu({ onSnooze, disabled = false, isCompact = false }: { onSnooze: (until: Date) => void; disabled?: boolean; isCompact?: boolean }) {
  const [isPicking, setIsPicking] = useState(false);
  return (
    <>
      <Menu
        trigger={
          <Button size={isCompact ? "sm" : "md"} disabled={disabled} title="Snooze">
            <AlarmClock className={isCompact ? "size-3.5" : "size-4 @max-lg:hidden"} aria-hidden /> Snooze
          </Button>
        }
      >
        {snoozeTimes(new Date()).map(({ label, at }) => (
          <MenuItem key={label} onSelect={() => onSnooze(at)}>
            <span className="flex-1">{label}</span> <span className="tabular text-xs text-ink-3">{momentFormat.format(at)}</span>
          </MenuItem>
        ))}
        <MenuSeparator />
        <MenuItem onSelect={() => setIsPicking(true)}>Pick a time…</MenuItem>
      </Menu>
      <Dialog open={isPicking} onOpenChange={setIsPicking} title="Snooze until" description="It leaves the inbox and comes back as unread.">
        {isPicking && (
          <TimeForm
            onPick={(until) => {
              setIsPicking(false);
              onSnooze(until);
            }}
            onClose={() => setIsPicking(false)}
          />
        )}
      </Dialog>
    </>
  );
}

function TimeForm({ onPick, onClose }: { onPick: (until: Date) => void; onClose: () => void }) {
  const [value, setValue] = useState(() => fieldValue(snoozeTimes(new Date()).at(-2)!.at));
  const until = new Date(value);
  const isFuture = until.getTime() > Date.now();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isFuture) onPick(until);
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3 text-sm">
      <label className="flex flex-col gap-1">
        Until
        <Input type="datetime-local" value={value} min={fieldValue(new Date())} onChange={(event) => setValue(event.target.value)} />
      </label>
      {!isFuture && <p className="text-xs text-fail">Choose a moment in the future.</p>}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button variant="primary" type="submit" disabled={!isFuture}>
          Snooze
        </Button>
      </div>
    </form>
  );
}

interface SnoozeTime {
  label: string;
  at: Date;
}

const MORNING_HOUR = 9;
const EVENING_HOUR = 18;

const atHour = (now: Date, days: number, hour: number): Date => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hour);

/** Return the suggestions: later today (not late in the evening), tomorrow morning, and the morning of next Monday. */
export function snoozeTimes(now: Date): SnoozeTime[] {
  const inThreeHours = new Date(now.getTime() + 3 * 3_600_000);
  const evening = atHour(now, 0, EVENING_HOUR);
  const later = inThreeHours < evening ? evening : inThreeHours;
  const daysToMonday = (8 - now.getDay()) % 7 || 7;
  return [
    ...(later.getDate() === now.getDate() ? [{ label: "Later today", at: later }] : []),
    { label: "Tomorrow", at: atHour(now, 1, MORNING_HOUR) },
    { label: "Next week", at: atHour(now, daysToMonday, MORNING_HOUR) },
  ];
}

/** Return a moment as the value of a field for date and time. */
export const fieldValue = (at: Date): string => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
