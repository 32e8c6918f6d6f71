/** Tree: who gave which task to whom, as the indented list of the board. */
interface Part {
  id: string;
  parent_id: string | null;
}

export interface Branch<T> {
  part: T;
  /** How many of the tasks above it are in the list. */
  depth: number;
}

/** Return what `isShown` keeps, each below the nearest task above it that is kept, in the order of the given parts. */
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
  // A stack, not recursion: a chain of tasks may be longer than a browser's stack.
  const open = [...(children.get(null) ?? [])].reverse().map((part) => ({ part, depth: 0 }));
  for (let next = open.pop(); next; next = open.pop()) {
    const { part, depth } = next;
    const isKept = isShown(part);
    if (isKept) found.push({ part, depth });
    for (const child of (children.get(part.id) ?? []).toReversed()) open.push({ part: child, depth: depth + Number(isKept) });
  }
  return found;
}
