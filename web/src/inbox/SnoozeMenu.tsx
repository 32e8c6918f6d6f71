/** SnoozeMenu: a button that puts items off until a suggested moment, or until one that the person picks. */
import { AlarmClock } from "lucide-react";
import { type FormEvent, useState } from "react";
import { fieldValue, snoozeTimes } from "@/inbox/snoozeTimes";
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
