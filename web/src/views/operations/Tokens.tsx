/** Tokens: who may use the API: tokens of programs and sessions of browsers. A secret is shown once. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Copy, Plus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { copyText } from "@/lib/clipboard";
import { fullTime, shortTime } from "@/lib/format";
import { Empty, Loaded, Problem, Section } from "@/views/operations/parts";
import { tokensQuery } from "@/views/operations/queries";
import { Button, Chip, Dialog, DialogActions, Input } from "@/ui";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { showToast } from "@/parts/toast";

type Token = Schemas["TokenView"];
const SCOPES: Record<Token["scope"], string> = { read: "Read: see everything, change nothing", talk: "Talk: also send messages and answer questions", operate: "Operate: also run teams", admin: "Admin: everything, also tokens and this page" };
const KINDS: Record<Token["kind"], string> = { token: "Program", session: "Browser", link: "Sign-in link" };
const refresh = () => queryClient.invalidateQueries({ queryKey: tokensQuery.queryKey });

export default function Tokens() {
  const query = useQuery(tokensQuery);
  const [isCreating, setIsCreating] = useState(false);
  return (
    <>
      <Section
        title="Tokens and sessions"
        description={
          <>
            Who may use the API now. The owner's token, in the file <code>token</code> of the home, is not listed.
          </>
        }
        action={
          <Button variant="primary" onClick={() => setIsCreating(true)}>
            <Plus className="size-4" aria-hidden /> New token
          </Button>
        }
      >
        <Loaded query={query} what="the tokens">
          {(found) =>
            found.length === 0 ? (
              <Empty>No tokens. Create one for a program or a script.</Empty>
            ) : (
              <ul className="divide-y divide-line">
                {found.toReversed().map((token) => (
                  <TokenItem key={token.id} token={token} />
                ))}
              </ul>
            )
          }
        </Loaded>
      </Section>
      {isCreating && <NewToken onClose={() => setIsCreating(false)} />}
    </>
  );
}

function TokenItem({ token }: { token: Token }) {
  const now = useNow(60_000);
  const [isAsking, setIsAsking] = useState(false);
  const revoke = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/tokens/{token}", { params: { path: { token: token.id } } })),
    onSuccess: async () => {
      await refresh();
      showToast(`${token.name} was revoked.`);
    },
  });
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex flex-wrap items-center gap-2">
          <span dir="auto" className="font-medium break-words">
            {token.name}
          </span>
          <Chip tone={token.scope === "admin" ? "wait" : "plain"}>{token.scope}</Chip>
          <span className="text-xs text-ink-3">{token.is_own ? "This browser" : KINDS[token.kind]}</span>
        </p>
        <p className="text-xs text-ink-2">
          Created <time dateTime={token.created_at} title={fullTime(token.created_at)}>{shortTime(token.created_at)}</time> · last used {token.used_at ? <RelativeTime at={token.used_at} now={now} /> : "never"} ·{" "}
          {token.expires_at ? <>valid until {fullTime(token.expires_at)}</> : "valid until it is revoked"}
        </p>
      </div>
      <Button size="sm" variant="danger" aria-label={`Revoke ${token.name}`} onClick={() => setIsAsking(true)}>
        Revoke
      </Button>
      {isAsking && (
        <Dialog open onOpenChange={setIsAsking} title={`Revoke ${token.name}?`} description={`${token.is_own ? "You are signed out of this browser, and need a new sign-in link. " : ""}It gives no access from now on. This cannot be undone.`}>
          <Problem error={revoke.error} />
          <DialogActions>
            <Button onClick={() => setIsAsking(false)}>Keep it</Button>
            <Button variant="danger" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
              Revoke it
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </li>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Token["scope"]>("read");
  const [days, setDays] = useState("");
  const create = useMutation({ mutationFn: () => unwrap(api.POST("/api/tokens", { body: { name: name.trim(), scope, days: days ? Number(days) : null } })), onSuccess: refresh });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim()) create.mutate();
  };
  if (create.data) {
    const { secret } = create.data;
    return (
      <Dialog open onOpenChange={(open) => open || onClose()} title={`Token ${create.data.name}`} description="Copy it now: it cannot be shown again.">
        <p dir="ltr" className="rounded-sm bg-sunken p-3 font-mono text-sm break-all">
          {secret}
        </p>
        <DialogActions>
          <Button onClick={() => void copyText(secret).then(() => showToast("Copied."))}>
            <Copy className="size-4" aria-hidden /> Copy
          </Button>
          <Button variant="primary" onClick={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    );
  }
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title="New token" description="For a program or a script. Its secret is shown once.">
      <form onSubmit={submit} className="space-y-4 text-sm font-medium">
        <label className="flex flex-col gap-1">
          Name
          <Input dir="auto" value={name} onChange={(event) => setName(event.target.value)} maxLength={100} autoFocus className="font-normal" placeholder="nightly report" />
        </label>
        <label className="flex flex-col gap-1">
          Scope
          <select value={scope} onChange={(event) => setScope(event.target.value as Token["scope"])} className="h-9 w-full rounded-sm border border-control bg-surface px-2 text-sm font-normal pointer-coarse:h-11">
            {Object.entries(SCOPES).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label className="flex flex-col gap-1">
          Valid for days
          <Input type="number" min={1} max={3650} step={1} value={days} onChange={(event) => setDays(event.target.value)} className="font-normal" placeholder="until it is revoked" />
        </label>
        <Problem error={create.error} />
        <DialogActions>
          <Button onClick={onClose}>Not now</Button>
          <Button type="submit" variant="primary" disabled={!name.trim() || create.isPending}>
            {create.isPending ? "Creating…" : "Create token"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
