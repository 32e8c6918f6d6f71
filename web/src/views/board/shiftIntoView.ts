/** Return by how much to move something that starts at `at`, so that it lies between two edges. What is too large starts at the first edge, so that a second call moves nothing. */
export function shiftIntoView(at: number, size: number, first: number, last: number): number {
  if (at < first || size > last - first) return first - at;
  return Math.min(0, last - size - at);
}
