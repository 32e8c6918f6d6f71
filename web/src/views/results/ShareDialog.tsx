/** ShareDialog: makes a link by which others read one report, and lists the links that work, to revoke them. */
import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { fullTime, plural } from "@/lib/format";
import { CopyField } from "@/parts/CopyField";
import { showToast } from "@/parts/toast";
import { Markdown } from "@/reading/Markdown";
import { Button, Dialog, DialogActions, Loading, Pills, Problem } from "@/ui";

const DAYS = { "1": 1, "7": 7, "30": 30 } as const;
const sharesQuery = (node: string) =>
  queryOptions({ queryKey: ["shares", node] as const, queryFn: () => unwrap(api.GET("/api/nodes/{node}/shares", { params: { path: { node } } })), staleTime: 0 });

export default function ShareDialog({ node, title, onClose }: { node: string; title: string; onClose: () => void }) {
  const { data, error } = useQuery(sharesQuery(node));
  const [days, setDays] = useState<keyof typeof DAYS>("7");
  const make = useMutation({
    mutationFn: () => unwrap(api.POST("/api/nodes/{node}/shares", { params: { path: { node } }, body: { days: DAYS[days] } })),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ["shares", node] }),
  });
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title="Share this report" description={`Whoever has the link reads “${title}” without signing in. They can change nothing, and see nothing else.`}>
      <Problem of={error ?? make.error} className="mb-3 text-sm" />
      {!data && !error && <Loading label="Loading the links …" />}
      {data?.why_off && (
        <div role="note" className="mb-5 rounded-md border border-wait-line bg-wait-bg p-3 text-sm">
          <Markdown text={data.why_off} />
        </div>
      )}
      {data && !data.why_off && (
        <div className="space-y-3 text-sm">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <span>The link works for</span>
            <Pills
              label="The link works for"
              value={days}
              onChange={setDays}
              options={[
                ["1", "1 day"],
                ["7", "7 days"],
                ["30", "30 days"],
              ]}
            />
          </div>
          {make.data && (
            <div role="status" className="space-y-1.5">
              <CopyField label="Link to the report" text={make.data.url} />
              <p className="text-xs text-ink-2">Copy it now: it cannot be shown again. It works until {fullTime(make.data.expires_at)}.</p>
            </div>
          )}
        </div>
      )}
      {data && (data.shares.length > 0 || !data.why_off) && <LiveLinks node={node} shares={data.shares} />}
      <DialogActions>
        <Button onClick={onClose}>Done</Button>
        {data && !data.why_off && (
          <Button variant="primary" onClick={() => make.isPending || make.mutate()}>
            {make.data ? "Make another link" : "Make a link"}
          </Button>
        )}
      </DialogActions>
    </Dialog>
  );
}

function LiveLinks({ node, shares }: { node: string; shares: readonly Schemas["ShareView"][] }) {
  const revoke = useMutation({
    mutationFn: (share: string) => unwrap(api.DELETE("/api/nodes/{node}/shares/{share}", { params: { path: { node, share } } })),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ["shares", node] });
      showToast("The link was revoked. It opens nothing any more.");
    },
  });
  return (
    <section className="my-5 text-sm">
      <h3 className="font-semibold">Links that work</h3>
      <Problem of={revoke.error} />
      {shares.length === 0 ? (
        <p className="text-ink-2">None. Links that you make are listed here, to be revoked.</p>
      ) : (
        <ul className="divide-y divide-line">
          {shares.map((share) => (
            <li key={share.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
              <span className="min-w-0 flex-1 basis-52">
                Until {fullTime(share.expires_at)}
                <span className="block text-xs text-ink-2">
                  Made {fullTime(share.created_at)} · {share.opened_at ? `opened ${plural(share.opens, "time")}, first ${fullTime(share.opened_at)}` : "not opened yet"}
                </span>
              </span>
              <Button size="sm" variant="danger" disabled={revoke.isPending} aria-label={`Revoke the link that works until ${fullTime(share.expires_at)}`} onClick={() => revoke.mutate(share.id)}>
                Revoke
              </Button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
