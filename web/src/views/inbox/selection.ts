/** Selection: which items of a list are selected, by click, by range and all at once. */

export interface Selection {
  ids: ReadonlySet<string>;
  /** Where the next range begins: the item that was chosen last. */
  anchor: string | null;
}

export const NONE: Selection = { ids: new Set(), anchor: null };

/** Select or deselect an item. With `isRange`, all items from the anchor to it become as it becomes. */
export function toggle(selection: Selection, id: string, order: readonly string[], isRange = false): Selection {
  const ids = new Set(selection.ids);
  const isOn = !ids.has(id);
  const from = isRange && selection.anchor !== null ? order.indexOf(selection.anchor) : -1;
  const to = order.indexOf(id);
  const range = from < 0 ? [id] : order.slice(Math.min(from, to), Math.max(from, to) + 1);
  for (const one of range) {
    if (isOn) ids.add(one);
    else ids.delete(one);
  }
  return { ids, anchor: id };
}

/** Select all items, or none if all are selected. */
export const toggleAll = (selection: Selection, order: readonly string[]): Selection => (order.every((id) => selection.ids.has(id)) ? NONE : { ids: new Set(order), anchor: null });

/** Return the selection without items that are no longer in the list. The same object if nothing changes. */
export function only(selection: Selection, order: readonly string[]): Selection {
  const known = new Set(order);
  const ids = [...selection.ids].filter((id) => known.has(id));
  return ids.length === selection.ids.size ? selection : { ids: new Set(ids), anchor: selection.anchor };
}
