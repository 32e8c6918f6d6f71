/** Stored draft: words that the person has typed and not sent, kept in localStorage until they are sent. */
import { useState } from "react";
import { readStored, writeStored } from "@/lib/storage";

/** As `useState(first)`, for a text that survives a closed dialog and a reload. When it is `first` again, it is forgotten. */
export function useStoredDraft(key: string, first = ""): [string, (text: string) => void] {
  const [text, setText] = useState(() => readStored(`draft.${key}`) ?? first);
  const change = (now: string) => {
    writeStored(`draft.${key}`, now === first ? null : now);
    setText(now);
  };
  return [text, change];
}

/** Like `useStoredDraft`, for a change to a text that others may change meanwhile. The third value says whether the text is another one now than when the change was begun. */
export function useStoredEdit(key: string, first: string): [string, (text: string) => void, boolean] {
  const of = `draft.${key}.of`;
  const [text, setText] = useStoredDraft(key, first);
  const [isOutdated] = useState(() => text !== first && (readStored(of) ?? first) !== first);
  const change = (now: string) => {
    writeStored(of, now === first ? null : (readStored(of) ?? first));
    setText(now);
  };
  return [text, change, isOutdated];
}

export const OUTDATED_EDIT = "The file has changed since you began to write this. If you save, it is replaced by your text; Discard shows what it says now.";
