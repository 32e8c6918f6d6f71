/** Swatch: the paint of a phase, as in the chart. */
import { PHASES, type Phase } from "@/views/timeline/phases";

export function Swatch({ phase }: { phase: Phase }) {
  const { colour, isStriped } = PHASES[phase];
  const paint = isStriped ? { backgroundImage: `repeating-linear-gradient(135deg, var(${colour}) 0 2px, transparent 2px 5px)` } : { backgroundColor: `var(${colour})` };
  return <span aria-hidden className="inline-block h-3 w-4 shrink-0 rounded-[3px] border border-line-2" style={paint} />;
}
