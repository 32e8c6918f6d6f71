/** Editor: a plain text field for a file, in the font of code. It says so if it shows words from before that were not saved. */
import { useState } from "react";
import { Textarea } from "@/ui";

interface EditorProps {
  label: string;
  value: string;
  /** The text without the person's changes. */
  first: string;
  onChange: (text: string) => void;
  isReadOnly?: boolean;
}

export function Editor({ label, value, first, onChange, isReadOnly = false }: EditorProps) {
  const [isKept] = useState(value !== first);
  return (
    <>
      {isKept && <p className="rounded-sm bg-wait-bg px-3 py-2 text-wait">These are your words from before; they were not saved yet.</p>}
      <Textarea aria-label={label} rows={12} value={value} readOnly={isReadOnly} onChange={(event) => onChange(event.target.value)} className="font-mono text-xs" spellCheck={false} dir="auto" />
    </>
  );
}
