/** Stored draft: words that the person has typed and not sent, kept in localStorage until they are sent. */
import { useState } from "react";
import { readStored, writeStored } from "@/lib/storage";

/** As `useState("")`, for a text that survives a reload. An empty text is forgotten. */
export function useStoredDraft(key: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => readStored(`draft.${key}`) ?? "");
  const change = (now: string) => {
    writeStored(`draft.${key}`, now || null);
    setText(now);
  };
  return [text, change];
}
