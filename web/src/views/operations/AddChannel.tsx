/** AddChannel: the dialog that adds a channel: what it is, then where it leads, and the person's consent to it. */
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, Suspense, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { lazyChunk } from "@/live/chunks";
import { Field, Select } from "@/parts/fields";
import { ReadGate } from "@/reading/ReadGate";
import { Consent, Problem } from "@/views/operations/parts";
import { TextChange } from "@/views/operations/TextChange";
import { Button, Dialog, DialogActions, Input } from "@/ui";

const SecretForm = lazyChunk(() => import("@/views/composer/SecretForm"));

type Draft = Schemas["ChannelDraft"];
type Kind = Draft["kinds"] extends (infer One)[] | undefined ? One : never;
type Key = Exclude<keyof Draft, "name" | "type" | "kinds">;
interface FieldOf {
  label: string;
  hint?: string;
  placeholder?: string;
  /** Of a secret, the field holds the name alone. */
  is?: "secret" | "port" | "security" | "list";
}
/** The form of a secret's name: whoever pastes the secret itself is told so, and it is sent nowhere. */
const SECRET_NAME = { pattern: "[A-Za-z][\\w\\-]{0,63}", title: "The name of a secret: letters, digits, - and _. Enter it… takes the secret itself." };
const SECRET = "Write a name for the secret here; “Enter it…” takes the secret itself.";
const FIELDS: Partial<Record<Key, FieldOf>> = {
  token_secret: { label: "Secret with the bot's token", hint: `BotFather in Telegram makes a bot and gives you its token. ${SECRET}`, placeholder: "telegram_token", is: "secret" },
  api_url: { label: "Bot API server", hint: "Empty: that of Telegram.", placeholder: "https://api.telegram.org" },
  address: { label: "Mailbox of agiraph", placeholder: "agiraph@example.org" },
  url: { label: "Address", hint: "Each message is posted there as JSON.", placeholder: "https://example.org/hook" },
  url_secret: { label: "Or the secret with the address", hint: "If the address itself is secret.", is: "secret" },
  secret_secret: { label: "Secret that signs the requests", hint: "If they are to be signed.", is: "secret" },
  smtp_host: { label: "Server that sends (SMTP)", placeholder: "smtp.example.org" },
  smtp_port: { label: "Its port", hint: "Empty: the usual one.", is: "port" },
  smtp_security: { label: "Its encryption", is: "security" },
  imap_host: { label: "Server that is read (IMAP)", placeholder: "imap.example.org" },
  imap_port: { label: "Its port", hint: "Empty: the usual one.", is: "port" },
  imap_security: { label: "Its encryption", is: "security" },
  folder: { label: "Folder that is read", placeholder: "INBOX" },
  checked_by: { label: "Server whose checks of senders are believed", hint: "Empty: none. Then a mail counts only if it answers one of agiraph.", placeholder: "mx.example.org" },
  host: { label: "Server (SMTP)", placeholder: "smtp.example.org" },
  port: { label: "Its port", hint: "Empty: the usual one.", is: "port" },
  security: { label: "Its encryption", is: "security" },
  sender: { label: "From", placeholder: "agiraph@example.org" },
  to: { label: "To", hint: "Several addresses with commas between them.", placeholder: "me@example.org", is: "list" },
  user: { label: "User" },
  password_secret: { label: "Secret with the password", hint: SECRET, placeholder: "mail_password", is: "secret" },
};
const TYPES: Record<string, { label: string; fields: readonly Key[] }> = {
  telegram: { label: "Telegram: messages to you, and your answers", fields: ["token_secret", "api_url"] },
  email: { label: "E-mail: messages to you, and your answers", fields: ["address", "smtp_host", "smtp_port", "smtp_security", "imap_host", "imap_port", "imap_security", "user", "password_secret", "folder", "checked_by"] },
  smtp: { label: "E-mail that only sends", fields: ["host", "port", "security", "sender", "to", "user", "password_secret"] },
  webhook: { label: "Webhook: another program gets the messages", fields: ["url", "url_secret", "secret_secret"] },
  terminal: { label: "The terminal in which agiraph runs", fields: [] },
  own: { label: "A channel of your own code", fields: [] },
};
const KINDS: Partial<Record<Kind, string>> = { question: "Questions", approval: "Requests for approval", briefing: "Briefings", report: "Reports", failure: "Failures", result: "Results" };
const OFFERED = ["question", "approval", "briefing", "report", "failure", "result"] as const;
const SECURITIES = [
  ["", "The usual one"],
  ["starttls", "STARTTLS"],
  ["tls", "TLS"],
  ["none", "None, for a server of your own"],
] as const;

export default function AddChannel({ onAdded, onClose }: { onAdded: (name: string, isTwoWay: boolean) => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const [type, setType] = useState("telegram");
  const [own, setOwn] = useState("");
  const [kinds, setKinds] = useState<readonly Kind[]>(OFFERED);
  const [values, setValues] = useState<Partial<Record<Key, string>>>({});
  const [keeping, setKeeping] = useState<Key | null>(null);
  const { fields } = TYPES[type]!;
  const put = (key: Key, value: string) => setValues((before) => ({ ...before, [key]: value }));
  const draft = (): Draft => {
    const given = fields.flatMap((key): [Key, unknown][] => {
      const text = (values[key] ?? "").trim();
      if (!text) return [];
      const is = FIELDS[key]?.is;
      return [[key, is === "port" ? Number(text) : is === "list" ? text.split(",").map((one) => one.trim()).filter(Boolean) : text]];
    });
    // What is left out is empty.
    return { name: name.trim(), type: type === "own" ? `own:${own.trim()}` : type, kinds: kinds.length === OFFERED.length ? [] : [...kinds], ...Object.fromEntries(given) } as Draft;
  };
  const look = useMutation({ mutationFn: () => unwrap(api.POST("/api/channels/draft", { body: draft() })) });
  const add = useMutation({ mutationFn: (sha256: string) => unwrap(api.POST("/api/channels", { body: { ...draft(), sha256 } })), onSuccess: () => onAdded(name.trim(), !!look.data?.is_two_way) });
  const isReady = name.trim() !== "" && kinds.length > 0 && !look.isPending;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) look.mutate();
  };
  const shown = look.data;
  if (shown) {
    const back = () => {
      look.reset();
      add.reset();
    };
    return (
      <Dialog key="consent" open onOpenChange={(open) => open || add.isPending || onClose()} title={`Add ${shown.name}?`} description={shown.consent}>
        <ReadGate>
          <div className="space-y-3 pb-4">
            <TextChange label="Where it leads" before={null} now={[shown.description, `Messages: ${shown.kinds.map((kind) => (KINDS[kind] ?? kind).toLowerCase()).join(", ")}`].join("\n")} />
            <p className="text-sm text-ink-2">
              {shown.secrets.length === 0 ? "It is handed no secret." : `It is handed these secrets: ${shown.secrets.join(", ")}.`} {shown.is_two_way ? "To try it, agiraph signs in there and sends nothing." : "To try it, one test message is sent."}
            </p>
            <p dir="ltr" className="font-mono text-2xs break-all text-ink-3">
              sha256 {shown.sha256}
            </p>
            <Problem error={add.error} />
          </div>
          <Consent question={shown.question} agree={add.isPending ? "Trying…" : "Try and add it"} canAgree={!add.isPending} onAgree={() => add.mutate(shown.sha256)} refuse="Back" onRefuse={back} />
        </ReadGate>
      </Dialog>
    );
  }
  return (
    <Dialog key="form" open onOpenChange={(open) => open || onClose()} title="Add a channel" description="Where messages are sent besides the inbox. Nothing is sent before you have seen where it leads.">
      <form onSubmit={submit} className="space-y-4">
        <Field label="Name" hint="a-z, 0-9, - and _, such as phone.">
          {(id, hint) => <Input id={id} aria-describedby={hint} dir="ltr" value={name} onChange={(event) => setName(event.target.value)} maxLength={24} autoCapitalize="none" spellCheck={false} placeholder="phone" className="w-full" />}
        </Field>
        <Field label="Kind">{(id) => <Select id={id} value={type} onChange={setType} options={Object.entries(TYPES).map(([one, { label }]) => [one, label] as const)} />}</Field>
        {type === "own" && <Field label="Its name in your code">{(id) => <Input id={id} dir="ltr" value={own} onChange={(event) => setOwn(event.target.value)} spellCheck={false} autoCapitalize="none" placeholder="fax" className="w-full" />}</Field>}
        {fields.map((key) => {
          const { label, hint, placeholder, is } = FIELDS[key]!;
          const value = values[key] ?? "";
          return (
            <Field key={key} label={label} hint={hint}>
              {(id, hintId) =>
                is === "security" ? (
                  <Select id={id} value={value} onChange={(next) => put(key, next)} options={SECURITIES} />
                ) : (
                  <div className="flex items-center gap-2">
                    <Input id={id} aria-describedby={hintId} dir="ltr" type={is === "port" ? "number" : "text"} {...(is === "port" ? { min: 1, max: 65535 } : {})} {...(is === "secret" ? SECRET_NAME : {})} value={value} onChange={(event) => put(key, event.target.value)} spellCheck={false} autoCapitalize="none" autoComplete="off" placeholder={placeholder} className="min-w-0 flex-1" />
                    {is === "secret" && (
                      <Button size="sm" aria-label={`Enter a secret: ${label}`} onClick={() => setKeeping(key)}>
                        Enter it…
                      </Button>
                    )}
                  </div>
                )
              }
            </Field>
          );
        })}
        <fieldset>
          <legend className="mb-1 text-sm font-medium">Messages that go there</legend>
          <div className="flex flex-wrap gap-x-4 gap-y-1">
            {OFFERED.map((kind) => (
              <label key={kind} className="flex min-h-6 items-center gap-2 text-sm pointer-coarse:min-h-11">
                <input type="checkbox" className="size-4" checked={kinds.includes(kind)} onChange={(event) => setKinds(OFFERED.filter((one) => (one === kind ? event.target.checked : kinds.includes(one))))} />
                {KINDS[kind]}
              </label>
            ))}
          </div>
        </fieldset>
        <Problem error={look.error} />
        <DialogActions>
          <Button onClick={onClose}>Not now</Button>
          <Button type="submit" variant="primary" disabled={!isReady}>
            {look.isPending ? "Looking…" : "Continue"}
          </Button>
        </DialogActions>
      </form>
      {keeping !== null && (
        <Suspense>
          <SecretForm
            marked=""
            onKept={(kept) => {
              put(keeping, kept);
              setKeeping(null);
            }}
            onClose={() => setKeeping(null)}
          />
        </Suspense>
      )}
    </Dialog>
  );
}
