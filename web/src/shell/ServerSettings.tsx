/** ServerSettings: what confines commands, who is paired with channels, and which tools and skills of one's own are on. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { fullTime } from "@/lib/format";
import { channelsQuery, extensionsQuery, skillsQuery, statusQuery } from "@/shell/serverQueries";
import { Button, Chip, Dialog, type Tone } from "@/ui";

export default function ServerSettings() {
  return (
    <>
      <Sandbox />
      <Channels />
      <OwnTools />
    </>
  );
}

function Section({ name, description, children }: { name: string; description: string; children: ReactNode }) {
  return (
    <section className="border-b border-line py-4" aria-label={name}>
      <h2 className="text-sm font-semibold">{name}</h2>
      <p dir="auto" className="text-sm text-ink-2">{description}</p>
      {children}
    </section>
  );
}

function Sandbox() {
  const sandbox = useQuery(statusQuery).data?.sandbox;
  if (!sandbox) return null;
  return (
    <Section name={`Sandbox: ${sandbox.level}`} description={sandbox.description}>
      <div className="mt-2 space-y-1 text-xs text-ink-2">
        {sandbox.limited_by && !sandbox.description.includes(sandbox.limited_by) && <p>{sandbox.limited_by}</p>}
        <Lines label="Not enforced" lines={sandbox.not_held} />
        <Lines label="Why no stronger level" lines={sandbox.reasons} />
      </div>
    </Section>
  );
}

function Lines({ label, lines }: { label: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <details>
      <summary className="min-h-6 cursor-pointer font-medium pointer-coarse:min-h-10">
        {label}: {lines.length}
      </summary>
      <ul className="ml-4 list-disc">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </details>
  );
}

function Channels() {
  const { data } = useQuery(channelsQuery);
  if (!data || data.length === 0) return null;
  return (
    <Section name="Channels" description="Where messages are sent besides the inbox. A paired channel also brings your answers back.">
      <ul className="mt-2 divide-y divide-line">
        {data.map((channel) => (
          <Channel key={channel.name} channel={channel} />
        ))}
      </ul>
    </Section>
  );
}

function Channel({ channel }: { channel: Schemas["ChannelView"] }) {
  const refresh = () => queryClient.invalidateQueries({ queryKey: channelsQuery.queryKey });
  const pair = useMutation({ mutationFn: () => unwrap(api.POST("/api/channels/{channel}/pair", { params: { path: { channel: channel.name } } })) });
  const unpair = useMutation({ mutationFn: () => unwrap(api.DELETE("/api/channels/{channel}/pairing", { params: { path: { channel: channel.name } } })), onSettled: refresh });
  const problem = pair.error ?? unpair.error;
  const facts = [channel.is_two_way ? (channel.address ? `paired with ${channel.address}` : "not paired") : "sends only", channel.muted_until && `silent until ${fullTime(channel.muted_until)}`, channel.dropped > 0 && `${channel.dropped} messages from unknown senders dropped`];
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2 text-sm">
      <span dir="auto" className="font-medium">{channel.name}</span>
      <span className="min-w-0 flex-1 text-xs text-ink-2">{facts.filter(Boolean).join(" · ")}</span>
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
      {problem && (
        <p role="alert" className="basis-full text-xs text-fail">
          {errorMessage(problem)}
        </p>
      )}
      {pair.data && (
        <Dialog open onOpenChange={(open) => !open && (pair.reset(), void refresh())} title={`Pair ${channel.name}`} description={pair.data.hint}>
          <p className="rounded-sm bg-sunken p-3 text-center font-mono text-xl">{pair.data.code}</p>
          <p className="mt-2 text-xs text-ink-2">It works once, until {fullTime(pair.data.until)}.</p>
        </Dialog>
      )}
    </li>
  );
}

type Own = Pick<Schemas["ExtensionView"], "id" | "sha256" | "state" | "summary" | "problem"> & { isSkill: boolean };
const TONES: Record<Own["state"], Tone> = { off: "plain", on: "done", changed: "wait", faulty: "fail" };

function OwnTools() {
  const extensions = useQuery(extensionsQuery).data ?? [];
  const skills = useQuery(skillsQuery).data ?? [];
  const all: Own[] = [...extensions.map((one) => ({ ...one, isSkill: false })), ...skills.map((one) => ({ ...one, isSkill: true }))];
  if (all.length === 0) return null;
  return (
    <Section name="Own tools and skills" description="No code runs and no skill is used until you have enabled exactly this content.">
      <ul className="mt-2 divide-y divide-line">
        {all.map((one) => (
          <OwnItem key={one.id} item={one} />
        ))}
      </ul>
    </Section>
  );
}

function OwnItem({ item }: { item: Own }) {
  const [isAsking, setIsAsking] = useState(false);
  const { id, sha256, isSkill } = item;
  const change = useMutation({
    mutationFn: async (on: boolean): Promise<void> => {
      const body = { id, sha256 };
      if (isSkill) await (on ? unwrap(api.POST("/api/skills/enable", { body })) : unwrap(api.POST("/api/skills/disable", { body: { id } })));
      else await (on ? unwrap(api.POST("/api/extensions/enable", { body })) : unwrap(api.POST("/api/extensions/disable", { body: { id } })));
    },
    onSettled: () => {
      setIsAsking(false);
      void queryClient.invalidateQueries({ queryKey: (isSkill ? skillsQuery : extensionsQuery).queryKey });
    },
  });
  const isOn = item.state === "on" || item.state === "faulty";
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2 text-sm">
      <span className="font-mono text-xs">{id}</span>
      <Chip tone={TONES[item.state]}>{item.state}</Chip>
      <span dir="auto" className="min-w-0 flex-1 text-xs text-ink-2">{item.problem || item.summary}</span>
      <Button size="sm" disabled={change.isPending} onClick={() => (isOn ? change.mutate(false) : setIsAsking(true))}>
        {isOn ? "Disable" : "Enable"}
      </Button>
      {change.error && (
        <p role="alert" className="basis-full text-xs text-fail">
          {errorMessage(change.error)}
        </p>
      )}
      {isAsking && (
        <Dialog open onOpenChange={setIsAsking} title={`Enable ${id}?`} description={isSkill ? "Agents follow it like your own instructions. Read it first." : "Its code runs inside agiraph with all rights of your user. Read it first."}>
          <p className="scroll rounded-sm bg-sunken p-3 font-mono text-xs break-all">sha256 {sha256}</p>
          <div className="mt-4 flex justify-end gap-2">
            <Button onClick={() => setIsAsking(false)}>Not now</Button>
            <Button variant="primary" disabled={change.isPending} onClick={() => change.mutate(true)}>
              Enable
            </Button>
          </div>
        </Dialog>
      )}
    </li>
  );
}
