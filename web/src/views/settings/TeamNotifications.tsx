/** TeamNotifications: when and where the team reaches the person: mute, quiet hours, channel, and how long it waits. */
import { useQuery } from "@tanstack/react-query";
import { meQuery } from "@/api/queries";
import { fullTime } from "@/lib/format";
import { isMuted, MUTED_FOREVER } from "@/lib/quiet";
import { Fields, Section, SectionForm } from "@/views/settings/Section";
import { type TeamSettings, useSave } from "@/views/settings/settingsQuery";
import { useEdits } from "@/views/settings/useEdits";
import { ReachFields } from "@/parts/teamFields";
import { Button, Problem } from "@/ui";

const HOUR_S = 3600;
const PATIENCES: readonly (readonly [number, string])[] = [
  [0, "For ever"],
  [HOUR_S, "1 hour"],
  [4 * HOUR_S, "4 hours"],
  [24 * HOUR_S, "1 day"],
  [7 * 24 * HOUR_S, "1 week"],
];
const selectStyle = "h-9 w-full rounded-sm border border-control bg-surface px-2 text-sm font-normal pointer-coarse:h-11";

export function TeamNotifications({ settings: { team } }: { settings: TeamSettings }) {
  const save = useSave(team.id);
  const me = useQuery(meQuery);
  const saved = { quiet_hours: team.quiet_hours, quiet_zone: team.quiet_zone, channel: team.channel, answer_within: team.answer_within };
  const form = useEdits(saved, `notifications.${team.id}`, (values) => ({ ...values, quiet_hours: values.quiet_hours.trim(), quiet_zone: values.quiet_zone.trim() }));
  const { quiet_hours: hours, quiet_zone: zone, channel, answer_within: patience } = form.values;
  const isListed = PATIENCES.some(([seconds]) => seconds === patience);
  return (
    <Section id="notifications" title="Notifications" about="What the team says is in the inbox in any case.">
      <Mute settings={{ team }} />
      <SectionForm save={save} isChanged={form.isChanged} edits={form} onSave={() => save.mutate(form.changes, { onSuccess: form.forget })}>
        <p className="font-normal text-ink-2">In quiet hours nothing pops up in the browser, channels are silent, and briefings wait until the hours are over.</p>
        <Fields>
          <ReachFields
            {...{ hours, zone, channel }}
            channels={me.data?.channels ?? []}
            onHours={(quiet_hours) => form.set({ quiet_hours })}
            onZone={(quiet_zone) => form.set({ quiet_zone })}
            onChannel={(channel) => form.set({ channel })}
          />
          <label className="flex flex-col gap-1">
            Waits for your answer
            <select className={selectStyle} value={patience} onChange={(event) => form.set({ answer_within: Number(event.target.value) })}>
              {!isListed && <option value={patience}>{Math.round(patience / 60)} minutes</option>}
              {PATIENCES.map(([seconds, label]) => (
                <option key={seconds} value={seconds}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        </Fields>
      </SectionForm>
    </Section>
  );
}

function Mute({ settings: { team } }: { settings: Pick<TeamSettings, "team"> }) {
  const save = useSave(team.id, "Saved.");
  const muteFor = (hours: number) => save.mutate({ muted_until: new Date(Date.now() + hours * 3_600_000).toISOString() });
  const until = team.muted_until;
  return (
    <div>
      <h3 className="font-medium">Mute</h3>
      {until && isMuted(team, new Date()) ? (
        <div className="mt-1 flex flex-wrap items-center gap-3">
          <span>{until === MUTED_FOREVER ? "Muted until you unmute it." : `Muted until ${fullTime(until)}.`} Nothing pops up, and nothing is sent to your channels.</span>
          <Button size="sm" disabled={save.isPending} onClick={() => save.mutate({ muted_until: null })}>
            Unmute
          </Button>
        </div>
      ) : (
        <div role="group" aria-label="Mute the team for" className="mt-1.5 flex flex-wrap gap-2">
          <Button size="sm" disabled={save.isPending} onClick={() => muteFor(1)}>
            For 1 hour
          </Button>
          <Button size="sm" disabled={save.isPending} onClick={() => muteFor(8)}>
            For 8 hours
          </Button>
          <Button size="sm" disabled={save.isPending} onClick={() => save.mutate({ muted_until: MUTED_FOREVER })}>
            Until I unmute it
          </Button>
        </div>
      )}
      <Problem of={save.error} className="text-sm font-normal" />
    </div>
  );
}
