/** teamFields: the settings of a team that the dialogs for new teams and for settings share. */
import type { Team } from "@/api/client";
import { cx } from "@/lib/cx";
import { inUnits } from "@/lib/format";
import { type Trust, TRUSTS } from "@/lib/trust";
import { Input, Pills, Textarea } from "@/ui";

export type Mode = Team["mode"];
export type Review = Team["review"];
export type Effort = NonNullable<Team["effort"]>;

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const INTERVALS: readonly (readonly [number, string])[] = [
  [30, "every 30 seconds"],
  [15 * MINUTE, "every 15 minutes"],
  [HOUR, "every hour"],
  [4 * HOUR, "every 4 hours"],
  [24 * HOUR, "every day"],
  [7 * 24 * HOUR, "every week"],
  [0, "never"],
];
const REVIEWS: readonly (readonly [Review, string])[] = [
  ["auto", "If it cannot be checked by machine"],
  ["always", "Always"],
  ["never", "Never"],
];

/** How much a model thinks before it answers, in the words of agiraph.toml and `--effort`. */
export const EFFORTS: readonly (readonly [Effort, string])[] = [
  ["none", "None"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
  ["max", "Max"],
];

const selectStyle = "h-9 w-full rounded-sm border border-control bg-surface px-2 text-sm font-normal pointer-coarse:h-10";

export function ModePills({ value, onChange }: { value: Mode; onChange: (mode: Mode) => void }) {
  return (
    <Pills
      label="Mode"
      value={value}
      onChange={onChange}
      options={[
        ["finite", "Ends with a result"],
        ["infinite", "Runs until you stop it"],
      ]}
    />
  );
}

/** How long the coordinator is idle before it starts a cycle by itself. A value that is not in the list is shown, too. */
export function IntervalField({ value, onChange }: { value: number; onChange: (seconds: number) => void }) {
  const isListed = INTERVALS.some(([seconds]) => seconds === value);
  return (
    <label className="flex flex-col gap-1">
      Starts a cycle
      <select className={cx(selectStyle)} value={value} onChange={(event) => onChange(Number(event.target.value))}>
        {!isListed && <option value={value}>every {inUnits(value)}</option>}
        {INTERVALS.map(([seconds, label]) => (
          <option key={seconds} value={seconds}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

export function ReviewField({ value, onChange }: { value: Review; onChange: (review: Review) => void }) {
  return (
    <label className="flex flex-col gap-1">
      A reviewer checks results
      <select className={cx(selectStyle)} value={value} onChange={(event) => onChange(event.target.value as Review)}>
        {REVIEWS.map(([review, label]) => (
          <option key={review} value={review}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** For `open` the person types the name of the team, because nothing protects such a team. */
export function TrustField({ value, onChange, name, typed, onType }: { value: Trust; onChange: (trust: Trust) => void; name: string; typed: string; onType: (text: string) => void }) {
  return (
    <div className="col-span-full flex flex-col gap-2">
      <label className="flex flex-col gap-1">
        Trust
        <select className={cx(selectStyle)} value={value} onChange={(event) => onChange(event.target.value as Trust)}>
          {TRUSTS.map(([trust, label]) => (
            <option key={trust} value={trust}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <p className={cx("text-xs font-normal", value === "open" ? "text-fail" : "text-ink-2")}>{TRUSTS.find(([trust]) => trust === value)?.[2]}</p>
      {value === "open" && (
        <label className="flex flex-col gap-1">
          Type “{name}” to allow this
          <Input value={typed} onChange={(event) => onType(event.target.value)} className="font-normal" autoComplete="off" />
        </label>
      )}
    </div>
  );
}

/** When the team sends no briefings, and through which channel it asks. */
export function ReachFields({ hours, zone, channel, channels, onHours, onZone, onChannel }: { hours: string; zone: string; channel: string; channels: readonly string[]; onHours: (text: string) => void; onZone: (text: string) => void; onChannel: (name: string) => void }) {
  return (
    <>
      <label className="flex flex-col gap-1">
        Quiet hours
        <Input value={hours} onChange={(event) => onHours(event.target.value)} placeholder="22:00-07:00; empty for none" className="font-normal" maxLength={20} />
      </label>
      <label className="flex flex-col gap-1">
        Time zone of the quiet hours
        <Input value={zone} onChange={(event) => onZone(event.target.value)} placeholder="Europe/Berlin" className="font-normal" maxLength={100} />
      </label>
      {(channels.length > 0 || channel) && (
        <label className="flex flex-col gap-1">
          Questions go to
          <select className={cx(selectStyle)} value={channel} onChange={(event) => onChannel(event.target.value)}>
            <option value="">Every channel that takes questions</option>
            {[...new Set([...channels, ...(channel ? [channel] : [])])].map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

/** The folders of this machine that the team sees, one a line. */
export function FoldersField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  return (
    <label className="col-span-full flex flex-col gap-1">
      Folders of this machine
      <Textarea rows={2} value={value} onChange={(event) => onChange(event.target.value)} placeholder="/home/me/project" className="font-normal" spellCheck={false} />
      <span className="text-xs font-normal text-ink-3">One path a line. The team reads it; with :rw at its end the team may also change it. Its files are shown on the Files page.</span>
    </label>
  );
}

/** What must be true when the goal is reached, one statement a line. */
export function AcceptanceField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  return (
    <label className="flex flex-col gap-1 text-sm font-medium">
      Done when
      <Textarea rows={2} value={value} onChange={(event) => onChange(event.target.value)} placeholder="One statement a line. Example: The report compares all three." className="font-normal" />
    </label>
  );
}

/** Null leaves the effort to the settings of the server and to the model. */
export function EffortField({ value, onChange }: { value: Effort | null; onChange: (effort: Effort | null) => void }) {
  return (
    <label className="flex flex-col gap-1" title="How much the models of the team think before they answer. More is slower and costs more.">
      Thinking effort
      <select className={cx(selectStyle)} value={value ?? ""} onChange={(event) => onChange((event.target.value || null) as Effort | null)}>
        <option value="">Default</option>
        {EFFORTS.map(([effort, text]) => (
          <option key={effort} value={effort}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
