/** fields: a field of a form with its label and a hint, and a list to choose from. */
import { type ReactNode, useId } from "react";

export function Field({ label, hint, children }: { label: string; hint?: string; children: (id: string, hint: string | undefined) => ReactNode }) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        {label}
      </label>
      {children(id, hint ? `${id}h` : undefined)}
      {hint && (
        <p id={`${id}h`} className="mt-1 text-xs text-ink-3">
          {hint}
        </p>
      )}
    </div>
  );
}

export function Select({ id, value, onChange, options, label }: { id?: string; value: string; onChange: (value: string) => void; options: readonly (readonly [string, string])[]; label?: string }) {
  return (
    <select id={id} aria-label={label} value={value} onChange={(event) => onChange(event.target.value)} className="h-9 w-full rounded-sm border border-control bg-surface px-2 text-sm pointer-coarse:h-11">
      {options.map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  );
}
