/** AddMcpServer: the dialog that adds an MCP server: how it is reached, then all that is started or contacted, and the person's consent to it. */
import { useMutation } from "@tanstack/react-query";
import { Plus, X } from "lucide-react";
import { type FormEvent, Suspense, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { lazyChunk } from "@/live/chunks";
import { Field, Select } from "@/parts/fields";
import { ReadGate } from "@/reading/ReadGate";
import { Consent, Problem } from "@/views/operations/parts";
import { TextChange } from "@/views/operations/TextChange";
import { Button, Dialog, DialogActions, IconButton, Input, Pills, Textarea } from "@/ui";

const SecretForm = lazyChunk(() => import("@/views/composer/SecretForm"));

type Draft = Schemas["McpServerDraft"];
type Shown = Schemas["McpDraftView"];
type Network = NonNullable<Draft["network"]> | "";
type Pair = { name: string; value: string };
const NETWORKS: [Network, string][] = [
  ["", "Package indexes for npx and uvx, else nothing"],
  ["none", "Nothing"],
  ["packages", "Package indexes"],
  ["hosts", "These hosts"],
  ["open", "All of the public internet"],
];
/** Lists of a server, one entry a line. */
const LISTS = [
  ["tools", "Tools that agents may call", "One name or pattern a line, such as read_*. Empty: all."],
  ["reads", "Of these, tools that change nothing", "They are called without a question. What you name nowhere counts as sending something out."],
  ["changes", "Tools that change something but send nothing to others", undefined],
  ["teams", "Teams that may use it", "One name a line. Empty: all teams."],
] as const;
type Lists = Record<(typeof LISTS)[number][0] | "hosts" | "folders", string>;
const lines = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter(Boolean);
const record = (pairs: Pair[]): Record<string, string> => Object.fromEntries(pairs.filter(({ name }) => name.trim()).map(({ name, value }) => [name.trim(), value]));

export default function AddMcpServer({ onAdded, onClose }: { onAdded: (server: Schemas["McpServerDetails"]) => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const [isProgram, setIsProgram] = useState(true);
  const [how, setHow] = useState("");
  const [pairs, setPairs] = useState<Pair[]>([]);
  const [network, setNetwork] = useState<Network>("");
  const [lists, setLists] = useState<Lists>({ tools: "", reads: "", changes: "", teams: "", hosts: "", folders: "" });
  const draft = (): Draft => ({
    name: name.trim(),
    command: isProgram ? how : "",
    url: isProgram ? "" : how,
    env: isProgram ? record(pairs) : {},
    headers: isProgram ? {} : record(pairs),
    network: isProgram && network ? network : null,
    hosts: isProgram && network === "hosts" ? lines(lists.hosts) : [],
    folders: isProgram ? lines(lists.folders) : [],
    ...{ tools: lines(lists.tools), reads: lines(lists.reads), changes: lines(lists.changes), teams: lines(lists.teams) },
  });
  const look = useMutation({ mutationFn: () => unwrap(api.POST("/api/mcp-servers/draft", { body: draft() })) });
  const add = useMutation({ mutationFn: (sha256: string) => unwrap(api.POST("/api/mcp-servers", { body: { ...draft(), sha256 } })), onSuccess: onAdded });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() && how.trim()) look.mutate();
  };
  const list = (key: keyof Lists, label: string, hint?: string) => (
    <Field key={key} label={label} hint={hint}>
      {(id, hintId) => <Textarea id={id} aria-describedby={hintId} dir="ltr" rows={2} spellCheck={false} value={lists[key]} onChange={(event) => setLists({ ...lists, [key]: event.target.value })} className="w-full font-mono text-xs" />}
    </Field>
  );

  if (look.data)
    return (
      <ToStart
        shown={look.data}
        isProgram={isProgram}
        add={add}
        onBack={() => {
          look.reset();
          add.reset();
        }}
        onClose={onClose}
      />
    );
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} className="w-[min(680px,calc(100vw-24px))]" title="Add an MCP server" description="A program or an address whose tools agents may call. Nothing is started before you have seen what it is.">
      <form onSubmit={submit} className="space-y-4">
        <Field label="Name" hint="Agents call its tools by this name: a-z, 0-9, - and _.">
          {(id, hint) => <Input id={id} aria-describedby={hint} dir="ltr" value={name} onChange={(event) => setName(event.target.value)} maxLength={24} autoCapitalize="none" spellCheck={false} placeholder="weather" className="w-full" />}
        </Field>
        <Pills
          label="Kind"
          value={isProgram ? "program" : "address"}
          onChange={(kind) => setIsProgram(kind === "program")}
          options={[
            ["program", "A program on this machine"],
            ["address", "An address"],
          ]}
        />
        <Field label={isProgram ? "Command" : "Address"} hint={isProgram ? "The program with its arguments, as in a shell. A server of npm or PyPI: npx -y NAME, or uvx NAME." : "If it wants a sign-in, you do that after it was added."}>
          {(id, hint) => <Input id={id} aria-describedby={hint} dir="ltr" value={how} onChange={(event) => setHow(event.target.value)} spellCheck={false} autoCapitalize="none" placeholder={isProgram ? "python3 /path/to/weather.py" : "https://mcp.example.com/mcp"} className="w-full font-mono text-xs" />}
        </Field>
        <Pairs what={isProgram ? "variable" : "header"} pairs={pairs} onChange={setPairs} />
        <details>
          <summary className="min-h-6 cursor-pointer text-sm font-medium pointer-coarse:min-h-11 pointer-coarse:leading-[44px]">What it and agents may do</summary>
          <div className="mt-3 space-y-4">
            {isProgram && (
              <>
                <Field label="Its program reaches">{(id) => <Select id={id} value={network} onChange={(value) => setNetwork(value as Network)} options={NETWORKS} />}</Field>
                {network === "hosts" && list("hosts", "Hosts", "One a line, such as api.github.com or *.example.com.")}
                {list("folders", "Folders that it sees", "One a line: /home/me/notes, with :rw if it may also write there.")}
              </>
            )}
            {LISTS.map(([key, label, hint]) => list(key, label, hint))}
          </div>
        </details>
        <Problem error={look.error} />
        <DialogActions>
          <Button onClick={onClose}>Not now</Button>
          <Button type="submit" variant="primary" disabled={!name.trim() || !how.trim() || look.isPending}>
            {look.isPending ? "Looking…" : "Continue"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

/** All that is started or contacted, and the question of `agiraph mcp confirm`. */
function ToStart({ shown, isProgram, add, onBack, onClose }: { shown: Shown; isProgram: boolean; add: { mutate: (sha256: string) => void; isPending: boolean; error: unknown }; onBack: () => void; onClose: () => void }) {
  return (
    <Dialog open onOpenChange={(open) => open || add.isPending || onClose()} className="w-[min(680px,calc(100vw-24px))]" title={isProgram ? `Start ${shown.name}?` : `Connect to ${shown.name}?`} description={shown.consent}>
      <ReadGate>
        <div className="space-y-3 pb-4">
          <TextChange label="How it is reached" before={null} now={[...shown.reached, ...shown.notes].join("\n")} />
          <p className="text-sm text-ink-2">{shown.secrets.length === 0 ? "It is handed no secret." : `It is handed these secrets: ${shown.secrets.join(", ")}.`}</p>
          <p dir="ltr" className="font-mono text-2xs break-all text-ink-3">
            sha256 {shown.sha256}
          </p>
          <Problem error={add.error} />
        </div>
        <Consent question={shown.question} agree={add.isPending ? "Starting…" : isProgram ? "Start it" : "Connect to it"} canAgree={!add.isPending} onAgree={() => add.mutate(shown.sha256)} refuse="Back" onRefuse={onBack} />
      </ReadGate>
    </Dialog>
  );
}

/** Variables or headers. A secret is entered in its own form; here stands its name alone. */
function Pairs({ what, pairs, onChange }: { what: "variable" | "header"; pairs: Pair[]; onChange: (pairs: Pair[]) => void }) {
  const [keeping, setKeeping] = useState<number | null>(null);
  const put = (at: number, pair: Partial<Pair>) => onChange(pairs.map((one, index) => (index === at ? { ...one, ...pair } : one)));
  return (
    <fieldset className="space-y-2">
      <legend className="text-sm font-medium">{what === "variable" ? "Variables" : "Headers"}</legend>
      <p className="text-xs text-ink-3">
        A key or a password is kept as a secret; <code>{"${NAME}"}</code> stands for the one called NAME.
      </p>
      {pairs.map((pair, at) => (
        <div key={at} className="flex flex-wrap items-center gap-2">
          <Input dir="ltr" aria-label={`Name of ${what} ${at + 1}`} value={pair.name} onChange={(event) => put(at, { name: event.target.value })} spellCheck={false} autoCapitalize="none" placeholder={what === "variable" ? "API_KEY" : "Authorization"} className="min-w-0 flex-1 basis-32 font-mono text-xs" />
          <Input dir="ltr" aria-label={`Value of ${what} ${at + 1}`} value={pair.value} onChange={(event) => put(at, { value: event.target.value })} spellCheck={false} autoComplete="off" placeholder={what === "variable" ? "${api_key}" : "Bearer ${api_key}"} className="min-w-0 flex-[2] basis-40 font-mono text-xs" />
          <Button size="sm" aria-label={`Enter a secret for ${what} ${at + 1}`} onClick={() => setKeeping(at)}>
            Secret…
          </Button>
          <IconButton label={`Remove ${what} ${at + 1}`} onClick={() => onChange(pairs.filter((_, index) => index !== at))}>
            <X className="size-4" />
          </IconButton>
        </div>
      ))}
      <Button size="sm" onClick={() => onChange([...pairs, { name: "", value: "" }])}>
        <Plus className="size-4" aria-hidden /> Add a {what}
      </Button>
      {keeping !== null && (
        <Suspense>
          <SecretForm
            marked=""
            onKept={(name) => {
              put(keeping, { value: `${pairs[keeping]!.value}\${${name}}` });
              setKeeping(null);
            }}
            onClose={() => setKeeping(null)}
          />
        </Suspense>
      )}
    </fieldset>
  );
}
