/** AddOwnTool: the dialog that writes a file with code of the person into the home, where it is off until they enable it. */
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, unwrap } from "@/api/client";
import { Field, Select } from "@/parts/fields";
import { Problem } from "@/views/operations/parts";
import { Button, Dialog, DialogActions, Input, Textarea } from "@/ui";

const KINDS = [
  ["tools", "Tools of agents"],
  ["engines", "A search engine"],
  ["channels", "A channel"],
  ["providers", "A provider of models"],
] as const;
const EXAMPLE = `from agiraph import tool


@tool(touches="nothing")
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)
`;

export default function AddOwnTool({ onAdded, onClose }: { onAdded: (id: string) => void; onClose: () => void }) {
  const [kind, setKind] = useState("tools");
  const [name, setName] = useState("");
  const [text, setText] = useState("");
  const id = `${kind}/${name.trim().replace(/\.py$/, "")}.py`;
  const add = useMutation({ mutationFn: () => unwrap(api.POST("/api/extensions/files", { body: { id, text } })), onSuccess: () => onAdded(id) });
  const isReady = name.trim() !== "" && text.trim() !== "" && !add.isPending;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) add.mutate();
  };
  const take = async (file: File | undefined) => {
    if (!file) return;
    setText(await file.text());
    setName((before) => before || file.name.replace(/\.py$/, ""));
  };
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} className="w-[min(820px,calc(100vw-24px))]" title="Add an own tool" description="A Python file in the home. It does not run before you have enabled it, which you are asked next.">
      <form onSubmit={submit} className="space-y-4">
        <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
          <Field label="Name">{(field) => <Input id={field} dir="ltr" value={name} onChange={(event) => setName(event.target.value)} maxLength={60} autoCapitalize="none" spellCheck={false} placeholder="weather" className="w-full" />}</Field>
          <Field label="What it offers">{(field) => <Select id={field} value={kind} onChange={setKind} options={KINDS} />}</Field>
        </div>
        <Field label="Code">{(field) => <Textarea id={field} dir="ltr" rows={12} value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} autoCapitalize="none" placeholder={kind === "tools" ? EXAMPLE : undefined} className="scroll w-full font-mono text-xs leading-5" />}</Field>
        <Field label="Or take it from a file">{(field) => <input id={field} type="file" accept=".py,text/x-python" onChange={(event) => void take(event.target.files?.[0])} className="text-sm file:mr-3 file:rounded-sm file:border file:border-solid file:border-line-2 file:bg-surface file:px-2.5 file:py-1 file:text-xs file:font-medium pointer-coarse:min-h-11" />}</Field>
        <Problem error={add.error} />
        <DialogActions>
          <Button onClick={onClose}>Not now</Button>
          <Button type="submit" variant="primary" disabled={!isReady}>
            {add.isPending ? "Adding…" : "Continue"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
