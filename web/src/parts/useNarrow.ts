import { useSyncExternalStore } from "react";

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
