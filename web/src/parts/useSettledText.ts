import { useEffect, useState } from "react";

const SETTLE_MS = 150;

/** Return the text once it has not changed for a moment, so that not every letter asks the server. Empty at first. */
export function useSettledText(text: string): string {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
