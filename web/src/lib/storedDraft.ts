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
