/** StateIcon: how a team stands, as an icon. Each state has its own shape; its name is the word that every list uses. */
import { CircleAlert, CircleCheck, CircleDot, CirclePause, CircleStop, CircleX, type LucideIcon } from "lucide-react";
import { cx } from "@/lib/cx";
import type { Tone } from "@/lib/endings";
import { TEAM_STATES, type TeamState } from "@/parts/teamState";

const ICONS: Record<TeamState, LucideIcon> = { running: CircleDot, needs_you: CircleAlert, paused: CirclePause, stopped: CircleStop, failed: CircleX, done: CircleCheck };
const COLOURS: Record<Tone, string> = { plain: "text-ink-3", work: "text-work", done: "text-done", wait: "text-wait", fail: "text-fail" };

export function StateIcon({ state, id, className }: { state: TeamState; id?: string; className?: string }) {
  const Icon = ICONS[state];
  const { label, tone } = TEAM_STATES[state];
  return (
    <span id={id} role="img" aria-label={label} title={label} className={cx("flex shrink-0", COLOURS[tone], className)}>
      <Icon className="size-4" aria-hidden />
    </span>
  );
}
