import { useSyncExternalStore } from "react";

/** Below this width, what stands beside a conversation, a report or a file folds away: the reader gets the room. Class names have the number, too (`max-[1180px]:`). */
export const FOLD_PX = 1180;

/** Windows below this width are phones: they have the tabs of a team at their lower edge. */
export const PHONE_PX = 768;

/** Return whether the window is narrower than `width` pixels. */
export function useNarrow(width: number): boolean {
  // CSS breakpoints are `min-width: N`; the fraction keeps this query from matching at exactly N.
  const query = `(max-width: ${width - 0.02}px)`;
  return useSyncExternalStore(
    (onChange) => {
      const list = matchMedia(query);
      list.addEventListener("change", onChange);
      return () => list.removeEventListener("change", onChange);
    },
    () => matchMedia(query).matches,
  );
}
