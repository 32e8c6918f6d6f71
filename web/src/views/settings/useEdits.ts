/** useEdits: the fields of a form whose saved values may change elsewhere while a person edits them. */
import { useEffect, useState } from "react";
import { readStored, writeStored } from "@/lib/storage";

interface Edit<V> {
  value: V;
  /** What was saved when the person began to edit. */
  from: V;
}
type Edits<T> = { [K in keyof T]?: Edit<T[K]> };

export interface Form<T> {
  /** What the fields show: the person's edits, and for all others what is saved now. */
  values: T;
  /** The fields that saving changes, as they are sent. */
  changes: Partial<T>;
  isChanged: boolean;
  /** Whether a field that the person edited was changed elsewhere too. */
  isChangedElsewhere: boolean;
  /** Whether an edit was made before the person left the form. */
  isRestored: boolean;
  set: (fields: Partial<T>) => void;
  /** Forget the edits of this moment: they are saved, or not wanted any more. Those that follow stay. */
  forget: () => void;
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
const keysOf = <T extends object>(of: T) => Object.keys(of) as (keyof T)[];

/** Return the edits that this tab has kept. One that is saved by now is none any more. */
function storedEdits<T extends object>(draft: string, saved: T): Edits<T> {
  const stored = JSON.parse(readStored(`draft.${draft}`, "tab") ?? "{}") as Edits<T>;
  return Object.fromEntries(keysOf(stored).filter((key) => !isSame(stored[key]!.value, saved[key])).map((key) => [key, stored[key]])) as Edits<T>;
}

/** The edits are kept under the name `draft` until they are saved or the tab is closed: another tab, or the same page weeks later, begins with what is saved. `clean` returns the values as they are compared and sent, such as without spaces at the ends. */
export function useEdits<T extends object>(saved: T, draft: string, clean: (values: T) => T = (values) => values): Form<T> {
  const [restored] = useState<Edits<T>>(() => storedEdits(draft, saved));
  const [edits, setEdits] = useState(restored);
  useEffect(() => writeStored(`draft.${draft}`, keysOf(edits).length > 0 ? JSON.stringify(edits) : null, "tab"), [draft, edits]);
  const values = { ...saved };
  for (const key of keysOf(edits)) values[key] = edits[key]!.value;
  const [cleaned, cleanSaved] = [clean(values), clean(saved)];
  const changed = keysOf(edits).filter((key) => !isSame(cleaned[key], cleanSaved[key]));
  return {
    values,
    changes: Object.fromEntries(changed.map((key) => [key, cleaned[key]])) as Partial<T>,
    isChanged: changed.length > 0,
    isChangedElsewhere: changed.some((key) => !isSame(edits[key]!.from, saved[key])),
    isRestored: changed.some((key) => edits[key] === restored[key]),
    set: (fields) =>
      setEdits((before) => {
        const after = { ...before };
        for (const key of keysOf(fields)) {
          const edit = { value: fields[key] as T[typeof key], from: before[key] ? before[key].from : saved[key] };
          if (isSame(edit.value, edit.from)) delete after[key];
          else after[key] = edit;
        }
        return after;
      }),
    forget: () =>
      setEdits((now) => {
        const later = keysOf(now).filter((key) => now[key] !== edits[key]);
        return Object.fromEntries(later.map((key) => [key, { ...now[key], from: edits[key] ? edits[key].value : now[key]!.from }])) as Edits<T>;
      }),
  };
}
