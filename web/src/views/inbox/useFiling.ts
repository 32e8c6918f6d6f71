/** useFiling: archive, snooze, restore and mark items of the inbox, with an undo, and with the reason for each item that was refused. */
import { useMutation } from "@tanstack/react-query";
import { api, type InboxRow, type Schemas, unwrap } from "@/api/client";
import { refreshItems } from "@/live/deltas";
import { plural, shortTime } from "@/lib/format";
import { showError, showToast } from "@/parts/toast";

type Action = "read" | "unread" | "archive" | "restore" | "snooze";
export interface Filing {
  action: Action;
  items: readonly InboxRow[];
  until?: Date;
}
export type Outcome = Schemas["BulkOutcome"];

export const bulk = (action: Schemas["BulkRequest"]["action"], ids: readonly string[], until?: Date): Promise<Outcome[]> =>
  unwrap(api.POST("/api/inbox/bulk", { body: { action, ids: [...ids], until: until?.toISOString() ?? null } })).then(({ outcomes }) => outcomes);

/** Return what to tell the person about so many items. */
function filedText(action: Action, count: number, until?: Date): string {
  const items = count === 1 ? "" : `${plural(count, "item")} `;
  const text = { read: "marked as read", unread: "marked as unread", archive: "archived", restore: "back in the inbox", snooze: `snoozed until ${until ? `${shortTime(until.toISOString())}` : "later"}` }[action];
  return `${items ? items + text : text.charAt(0).toUpperCase() + text.slice(1)}.`;
}

/** `onRefused` gets the outcomes of items that stay as they are. */
export function useFiling(onRefused: (refused: Outcome[], items: readonly InboxRow[]) => void) {
  return useMutation({
    mutationFn: ({ action, items, until }: Filing) => bulk(action, items.map((one) => one.message.id), until),
    onSuccess: (outcomes, { action, items, until }) => {
      const done = outcomes.filter((one) => one.is_done).map((one) => one.id);
      onRefused(outcomes.filter((one) => !one.is_done), items);
      void refreshItems(done);
      if (done.length === 0) return;
      const wereUnread = items.filter((one) => one.state === "unread" && done.includes(one.message.id)).map((one) => one.message.id);
      const undo = async () => {
        if (action === "read" || action === "unread") await bulk(action === "read" ? "unread" : "read", done);
        else await bulk("restore", done);
        if (wereUnread.length > 0 && action !== "read") await bulk("unread", wereUnread);
        await refreshItems(done);
      };
      showToast(filedText(action, done.length, until), action === "restore" ? undefined : () => void undo().catch((error: unknown) => showError("It could not be undone", error)));
    },
    onError: (error) => showError("Nothing was changed", error),
  });
}
