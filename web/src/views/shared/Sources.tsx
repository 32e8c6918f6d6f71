/** Sources: says that strangers wrote some of the words above or below, and who. */
import { ShieldQuestion } from "lucide-react";
import { Literal } from "@/conversation/Literal";
import { describeSources } from "@/lib/sources";

export function Sources({ of: sources }: { of: readonly string[] }) {
  if (sources.length === 0) return null;
  return (
    <p className="mt-2 flex items-start gap-1.5 text-xs text-ink-3" title="Some of this text comes from outside sources. Check it before you act on it.">
      <ShieldQuestion className="mt-px size-3.5 shrink-0" aria-hidden />
      <span dir="ltr" className="min-w-0 literal">
        Contains text from <Literal text={describeSources(sources)} />
      </span>
    </p>
  );
}
