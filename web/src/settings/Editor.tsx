/** Editor: a plain text field for a file, in the font of code. */
import { Textarea } from "@/ui";

export const Editor = ({ label, value, onChange, isReadOnly = false }: { label: string; value: string; onChange: (text: string) => void; isReadOnly?: boolean }) => (
  <Textarea aria-label={label} rows={12} value={value} readOnly={isReadOnly} onChange={(event) => onChange(event.target.value)} className="font-mono text-xs" spellCheck={false} dir="auto" maxLength={65_536} />
);
