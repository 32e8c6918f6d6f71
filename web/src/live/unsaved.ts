/** Unsaved: whether a reload of the page would lose something that the person made. The page reloads by itself only if not. */
import { useEffect } from "react";

const checks = new Set<() => boolean>();

/** Register a check that tells whether a reload would lose something. Return a function that removes it. */
export function addUnsavedCheck(check: () => boolean): () => void {
  checks.add(check);
  return () => void checks.delete(check);
}

export const hasUnsaved = (): boolean => [...checks].some((check) => check());

/** Say that this component holds something unsaved, such as a changed form. What the browser keeps over a reload, in localStorage or sessionStorage, needs no word. */
export function useUnsaved(isUnsaved: boolean): void {
  useEffect(() => (isUnsaved ? addUnsavedCheck(() => true) : undefined), [isUnsaved]);
}
