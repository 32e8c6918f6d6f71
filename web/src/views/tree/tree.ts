/** Tree: who gave which task to whom, as the indented list of the board and as its picture. */
interface Part {
  id: string;
  parent_id: string | null;
}

export interface Branch<T> {
  part: T;
  /** How many of the tasks above it are in the list. */
  depth: number;
}

/** Return what `isShown` keeps, each below the nearest task above it that is kept, in the order of the given parts. Tasks that are part of each other in a circle come last. */
export function asTree<T extends Part>(parts: readonly T[], isShown: (part: T) => boolean = () => true): Branch<T>[] {
  const byId = new Map(parts.map((part) => [part.id, part]));
  const children = new Map<string | null, T[]>();
  for (const part of parts) {
    const above = part.parent_id !== null && byId.has(part.parent_id) ? part.parent_id : null;
    const beside = children.get(above);
    if (beside) beside.push(part);
    else children.set(above, [part]);
  }
  const found: Branch<T>[] = [];
  const unseen = new Set(parts);
  // A stack, not recursion: a chain of tasks may be longer than a browser's stack.
  const open = [...(children.get(null) ?? [])].reverse().map((part) => ({ part, depth: 0 }));
  for (let next = open.pop(); next; next = open.pop()) {
    const { part, depth } = next;
    const isKept = isShown(part);
    unseen.delete(part);
    if (isKept) found.push({ part, depth });
    for (const child of (children.get(part.id) ?? []).toReversed()) open.push({ part: child, depth: depth + Number(isKept) });
  }
  for (const part of unseen) if (isShown(part)) found.push({ part, depth: 0 });
  return found;
}
