/** ConfirmAll: the button that confirms a whole list of knowledge and triggers. What is new since the list was opened counts only once the person has included it. */
import { useMutation } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { useRef, useState } from "react";
import { api, nextKey, unwrap } from "@/api/client";
import { invalidateKnowledge, queryClient, queryKeys } from "@/api/queries";
import { plural } from "@/lib/format";
import { randomId } from "@/lib/randomId";
import { Button } from "@/ui";
import { showError, showToast } from "@/parts/toast";

/** The most entries that the server confirms at once. */
export const MOST_AT_ONCE = 1000;

/** Confirms all of these entries that the person has had time to read, or none of them if one was changed meanwhile. */
export function ConfirmAll({ ids, describedBy }: { ids: readonly string[]; describedBy?: string }) {
  const [included, setIncluded] = useState<ReadonlySet<string>>(() => new Set(ids));
  const all = ids.filter((id) => included.has(id));
  const confirmed = all.slice(0, MOST_AT_ONCE);
  const newCount = ids.length - all.length;
  // If the response was lost, the same list is sent with the same key again: the server confirms it once.
  const request = useRef({ key: randomId(), list: "" });
  const confirm = useMutation({
    mutationFn: (confirm: string[]) => {
      const list = confirm.join();
      if (list !== request.current.list) request.current = { key: randomId(), list };
      return unwrap(api.POST("/api/inbox/digest", { params: { header: { "idempotency-key": request.current.key } }, body: { confirm, reject: [], always: [], stop: [] } }));
    },
    onSuccess: (_, { length }) => showToast(`${plural(length, "entry", "entries")} confirmed.`),
    onError: (error) => showError("Your decision could not be saved", error),
    onSettled: (_, error) => {
      request.current.key = nextKey(request.current.key, error);
      invalidateKnowledge();
      for (const key of [queryKeys.digest, queryKeys.inbox, ["triggers"]]) void queryClient.invalidateQueries({ queryKey: key });
    },
  });
  if (ids.length < 2) return null;
  return (
    <div className="flex flex-wrap items-center gap-2">
      {confirmed.length > 0 && (
        <Button size="sm" disabled={confirm.isPending} aria-describedby={describedBy} onClick={() => confirm.mutate(confirmed)}>
          <Check className="size-3.5" aria-hidden /> {confirmed.length < all.length ? `Confirm the first ${confirmed.length} of ${all.length}` : `Confirm all ${all.length}`}
        </Button>
      )}
      {newCount > 0 && (
        <Button size="sm" variant="ghost" onClick={() => setIncluded(new Set(ids))}>
          Include {newCount} new
        </Button>
      )}
    </div>
  );
}
