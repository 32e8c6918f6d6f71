/** useListKeys: the keys of the inbox's list: j and k move, x selects (with Shift a range), e archives, Escape ends the selection. */
import { useEffect } from "react";
import type { InboxRow } from "@/api/client";
import type { InboxList } from "@/api/queries";
import type { Filing } from "@/views/inbox/useFiling";
import { followsGo } from "@/parts/goKeys";
import { useShell } from "@/parts/shellState";

interface KeyTargets {
  order: readonly string[];
  item: string | null;
  selected: readonly InboxRow[];
  opened: InboxRow | undefined;
  open: (id: string) => void;
  select: (id: string, isRange: boolean) => void;
  file: (filing: Filing) => void;
  clear: () => void;
  box: InboxList["box"];
}

export function useListKeys(targets: KeyTargets): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { order, item, selected, opened, open, select, file, clear, box } = targets;
      const element = event.target instanceof HTMLElement ? event.target : null;
      const inField = element?.closest("textarea, select, [role=dialog], [role=menu], input:not([type=checkbox])");
      if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
      const key = event.key.toLowerCase();
      if (key === "escape" && selected.length > 0) return clear();
      if (!useShell.getState().singleKeys || !["j", "k", "x", "e"].includes(key) || followsGo(event)) return;
      event.preventDefault();
      if (key === "e") {
        // A link may have opened an item of another box.
        const items = selected.length > 0 ? selected : opened && opened.box === box ? [opened] : [];
        if (items.length > 0) file({ action: box === "inbox" ? "archive" : "restore", items });
      } else if (key === "x") {
        const id = element?.dataset.select ?? item;
        if (id !== null && order.includes(id)) select(id, event.shiftKey);
      } else {
        const now = item === null ? -1 : order.indexOf(item);
        const next = order[Math.max(0, Math.min(order.length - 1, now + (key === "j" ? 1 : -1)))];
        if (next) open(next);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [targets]);
}
