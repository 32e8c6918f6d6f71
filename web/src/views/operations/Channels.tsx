/** Channels: where messages are sent besides the inbox, and who is paired with them. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { Suspense, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { fullTime } from "@/lib/format";
import { lazyChunk } from "@/live/chunks";
import { showToast } from "@/parts/toast";
import { Empty, Loaded, Problem, Removal, Section } from "@/views/operations/parts";
import { channelsQuery } from "@/parts/serverQueries";
import { Button, Dialog } from "@/ui";

const AddChannel = lazyChunk(() => import("@/views/operations/AddChannel"));
const refresh = () => queryClient.invalidateQueries({ queryKey: channelsQuery.queryKey });

export function Channels() {
  const query = useQuery(channelsQuery);
  const [isAdding, setIsAdding] = useState(false);
  return (
    <Section
      title="Channels"
      description="Where messages are sent besides the inbox. A paired channel also brings your answers back."
      action={
        <Button onClick={() => setIsAdding(true)}>
          <Plus className="size-4" aria-hidden /> Add a channel
        </Button>
      }
    >
      <Loaded query={query} what="the channels">
        {(found) =>
          found.length === 0 ? (
            <Empty>No channels. With one, questions and results reach you by Telegram or e-mail, and you answer from there.</Empty>
          ) : (
            <ul className="divide-y divide-line">
              {found.map((channel) => (
                <Channel key={channel.name} channel={channel} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isAdding && (
        <Suspense>
          <AddChannel
            onClose={() => setIsAdding(false)}
            onAdded={(name, isTwoWay) => {
              setIsAdding(false);
              void refresh();
              showToast(isTwoWay ? `${name} was added. Pair it next.` : `${name} was added, and a test message was sent.`);
            }}
          />
        </Suspense>
      )}
    </Section>
  );
}

function Channel({ channel }: { channel: Schemas["ChannelView"] }) {
  const [isRemoving, setIsRemoving] = useState(false);
  const path = { channel: channel.name };
  const pair = useMutation({ mutationFn: () => unwrap(api.POST("/api/channels/{channel}/pair", { params: { path } })) });
  const unpair = useMutation({ mutationFn: () => unwrap(api.DELETE("/api/channels/{channel}/pairing", { params: { path } })), onSettled: refresh });
  const test = useMutation({ mutationFn: () => unwrap(api.POST("/api/channels/{channel}/test", { params: { path } })), onSuccess: () => showToast(channel.is_two_way && !channel.address ? `${channel.name} works. Pair it next.` : `A test message was sent by ${channel.name}.`) });
  const facts = [channel.is_two_way ? (channel.address ? `paired with ${channel.address}` : "not paired") : "sends only", channel.muted_until && `silent until ${fullTime(channel.muted_until)}`, channel.dropped > 0 && `${channel.dropped} messages from unknown senders dropped`];
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
      <span dir="auto" className="font-medium">{channel.name}</span>
      <span dir="auto" className="min-w-0 flex-1 basis-60 text-xs break-words text-ink-2">
        {facts.filter(Boolean).join(" · ")}
        {channel.description && (
          <span dir="ltr" className="block truncate text-ink-3" title={channel.description}>
            {channel.description}
          </span>
        )}
      </span>
      {channel.description && (
        <Button size="sm" disabled={test.isPending} onClick={() => test.mutate()} aria-label={`Test ${channel.name}`}>
          {test.isPending ? "Testing…" : "Test"}
        </Button>
      )}
      {channel.is_two_way && channel.address && (
        <Button size="sm" disabled={unpair.isPending} onClick={() => unpair.mutate()}>
          Unpair
        </Button>
      )}
      {channel.is_two_way && (
        <Button size="sm" disabled={pair.isPending} onClick={() => pair.mutate()}>
          Pair
        </Button>
      )}
      {channel.can_remove && (
        <Button size="sm" aria-label={`Remove ${channel.name}`} onClick={() => setIsRemoving(true)}>
          Remove
        </Button>
      )}
      <Problem error={pair.error ?? unpair.error ?? test.error} />
      {isRemoving && <Removal name={channel.name} what="It is taken out of agiraph.toml, sends nothing and hears nobody from now on. Whoever is paired with it is forgotten." remove={() => unwrap(api.DELETE("/api/channels/{channel}", { params: { path } }))} onRemoved={refresh} onClose={() => setIsRemoving(false)} />}
      {pair.data && (
        <Dialog open onOpenChange={(open) => !open && (pair.reset(), void refresh())} title={`Pair ${channel.name}`} description={pair.data.hint}>
          <p dir="ltr" className="rounded-sm bg-sunken p-3 text-center font-mono text-xl">
            {pair.data.code}
          </p>
          <p className="mt-2 text-xs text-ink-2">It works once, until {fullTime(pair.data.until)}.</p>
        </Dialog>
      )}
    </li>
  );
}
