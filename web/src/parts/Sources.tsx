/** Sources: says that strangers wrote some of the words above or below, and who. */
import { ShieldQuestion } from "lucide-react";
import type { ReactNode } from "react";
import { Literal } from "@/reading/Literal";
import { describeSources } from "@/lib/sources";

export function Sources({ of: sources }: { of: readonly string[] }) {
  if (sources.length === 0) return null;
  return (
    <Line title="Some of this text comes from outside sources. Check it before you act on it.">
      Contains text from <Literal text={describeSources(sources)} />
    </Line>
  );
}

/** Says why an uploaded file counts as text from outside, although the person has brought it. */
export const UploadedFile = () => <Line>Uploaded. Others may have written its text, also instructions for agents, so agents see it marked as text from outside.</Line>;

const Line = ({ title, children }: { title?: string; children: ReactNode }) => (
  <p className="mt-2 flex items-start gap-1.5 text-xs text-ink-3" title={title}>
    <ShieldQuestion className="mt-px size-3.5 shrink-0" aria-hidden />
    <span dir="ltr" className="min-w-0 literal">
      {children}
    </span>
  </p>
);
