/** Sources: says that strangers wrote some of the words above or below, and who. */
import { ShieldQuestion } from "lucide-react";
import { Literal } from "@/conversation/Literal";
import { describeSources } from "@/lib/sources";

export function Sources({ of: sources }: { of: readonly string[] }) {
  if (sources.length === 0) return null;
  return (
    <p className="mt-2 flex items-start gap-1.5 text-xs text-ink-3" title="Strangers wrote some of these words. Look before you act on them.">
      <ShieldQuestion className="mt-px size-3.5 shrink-0" aria-hidden />
      <span dir="ltr" className="min-w-0 literal">
        Holds words from <Literal text={describeSources(sources)} />
      </span>
    </p>
  );
}
