/** Channels: where messages are sent besides the inbox, and who is paired with them. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { fullTime } from "@/lib/format";
import { Empty, Loaded, Problem, Section } from "@/views/operations/parts";
import { channelsQuery } from "@/parts/serverQueries";
import { Button, Dialog } from "@/ui";

export function Channels() {
  const query = useQuery(channelsQuery);
  return (
    <Section title="Channels" description="Where messages are sent besides the inbox. A paired channel also brings your answers back.">
      <Loaded query={query} what="the channels">
        {(found) =>
          found.length === 0 ? (
            <Empty>
              No channels. Add one in agiraph.toml, such as <code>[channels.phone]</code>.
            </Empty>
          ) : (
            <ul className="divide-y divide-line">
              {found.map((channel) => (
                <Channel key={channel.name} channel={channel} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function Channel({ channel }: { channel: Schemas["ChannelView"] }) {
  const refresh = () => queryClient.invalidateQueries({ queryKey: channelsQuery.queryKey });
  const path = { channel: channel.name };
  const pair = useMutation({ mutationFn: () => unwrap(api.POST("/api/channels/{channel}/pair", { params: { path } })) });
  const unpair = useMutation({ mutationFn: () => unwrap(api.DELETE("/api/channels/{channel}/pairing", { params: { path } })), onSettled: refresh });
  const facts = [channel.is_two_way ? (channel.address ? `paired with ${channel.address}` : "not paired") : "sends only", channel.muted_until && `silent until ${fullTime(channel.muted_until)}`, channel.dropped > 0 && `${channel.dropped} messages from unknown senders dropped`];
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
      <span dir="auto" className="font-medium">{channel.name}</span>
      <span dir="auto" className="min-w-0 flex-1 text-xs break-words text-ink-2">
        {facts.filter(Boolean).join(" · ")}
      </span>
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
      <Problem error={pair.error ?? unpair.error} />
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
