/** SecretForm: takes a password or another secret. The server keeps it under a name; the message says the name alone. */
import { type FormEvent, useId, useState } from "react";
import { api, errorMessage, unwrap } from "@/api/client";
import { Button, Dialog, Input, Problem } from "@/ui";

export default function SecretForm({ marked, onKept, onClose }: { marked: string; onKept: (name: string) => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const [value, setValue] = useState(marked);
  const [isSending, setIsSending] = useState(false);
  const [problem, setProblem] = useState("");
  const id = useId();
  const keep = async (event: FormEvent) => {
    event.preventDefault();
    // React passes the submission on to the forms around the one in which the dialog stands.
    event.stopPropagation();
    setIsSending(true);
    setProblem("");
    try {
      await unwrap(api.PUT("/api/secrets/{name}", { params: { path: { name } }, body: { value } }));
      onKept(name);
    } catch (error) {
      setProblem(errorMessage(error));
      setIsSending(false);
    }
  };
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title="Secret" description="A password, a key, a number that nobody should read. It is kept under a name; agents, models and logs never see it. Your message says its name, and tools and MCP servers that ask for the name get it.">
      <form onSubmit={(event) => void keep(event)} autoComplete="off" className="space-y-4">
        <div>
          <label htmlFor={`${id}n`} className="mb-1 block text-sm font-medium">
            Name
          </label>
          <Input id={`${id}n`} value={name} onChange={(event) => setName(event.target.value)} placeholder="bank_login" autoCapitalize="none" autoComplete="off" spellCheck={false} maxLength={64} className="w-full" />
          <p className="mt-1 text-xs text-ink-3">Letters, digits, - and _</p>
        </div>
        <div>
          <label htmlFor={`${id}v`} className="mb-1 block text-sm font-medium">
            Secret
          </label>
          <Input id={`${id}v`} type="password" value={value} onChange={(event) => setValue(event.target.value)} autoComplete="new-password" spellCheck={false} className="w-full" />
        </div>
        <Problem of={problem} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={isSending || !name.trim() || !value}>
            {isSending ? "Keeping…" : "Keep it"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
