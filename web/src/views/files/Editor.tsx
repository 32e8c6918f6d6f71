/** Editor: changes a text of the team. What somebody else wrote meanwhile is never overwritten: both versions are shown. */
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, useEffect, useState } from "react";
import { ApiError, errorMessage } from "@/api/client";
import { queryClient } from "@/api/queries";
import { Button, Textarea } from "@/ui";
import { DiffView } from "@/views/files/DiffView";
import { saveText } from "@/views/files/documents";
import { readDraft, writeDraft } from "@/views/files/drafts";
import { type FileContent, fileQuery } from "@/views/files/fileQuery";
import { asTyped, withLineEndsOf } from "@/views/files/lineEnds";
import { baseName } from "@/views/files/tree";
import { showToast } from "@/parts/toast";

type TextFile = Extract<FileContent, { kind: "text" }>;

const HINTS: Record<string, string> = {
  "GOAL.md": "Later work reads the new words. Work that already runs keeps the old ones: tell the coordinator, or set a new goal in the team's settings.",
  "SOUL.md": "The team's character. Every agent reads it before it works.",
};

export default function Editor({ team, file, onDone }: { team: string; file: TextFile; onDone: () => void }) {
  const { path } = file;
  const [kept] = useState(() => readDraft(team, path));
  const [text, setText] = useState(asTyped(kept?.text ?? file.text));
  const [base, setBase] = useState({ hash: kept?.from ?? file.hash, text: asTyped(file.text) });
  const [theirs, setTheirs] = useState<TextFile | null>(null);
  const isChanged = text !== base.text;
  // Unsaved words survive a closed page.
  useEffect(() => writeDraft(team, path, isChanged ? { text, from: base.hash } : null), [team, path, text, base.hash, isChanged]);

  const save = useMutation({
    mutationFn: (expected: string) => saveText(team, file.path, file.bom + withLineEndsOf(theirs?.text ?? file.text, text), expected),
    onSuccess: () => {
      writeDraft(team, path, null);
      showToast(`${baseName(file.path)} is saved.`);
      onDone();
    },
    onError: async (error) => {
      if (!(error instanceof ApiError) || error.status !== 409) return;
      const now = await queryClient.fetchQuery({ ...fileQuery(team, file.path), staleTime: 0 });
      if (now.kind === "text") setTheirs(now);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(base.hash);
  };
  function onKeyDown(event: KeyboardEvent) {
    if ((event.ctrlKey || event.metaKey) && (event.key === "s" || event.key === "Enter")) {
      event.preventDefault();
      if (isChanged && !theirs) save.mutate(base.hash);
    }
  }
  function discard() {
    writeDraft(team, path, null);
    onDone();
  }

  if (theirs) {
    return (
      <div className="flex h-full flex-col">
        <div role="alert" className="mx-4 mt-3 shrink-0 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">
          <p className="font-semibold">This text was changed while you wrote, so yours is not saved yet.</p>
          <p>Below, lines with − are from the text as it is now, lines with + from yours.</p>
        </div>
        <div className="scroll min-h-0 flex-1" tabIndex={-1}>
          <DiffView before={asTyped(theirs.text)} after={text} label="Their text and yours" />
        </div>
        <div className="flex shrink-0 flex-wrap justify-end gap-2 border-t border-line px-4 py-3">
          <Button onClick={discard}>Take theirs</Button>
          <Button
            onClick={() => {
              setBase({ hash: theirs.hash, text: asTyped(theirs.text) });
              setTheirs(null);
              save.reset();
            }}
          >
            Go on editing mine
          </Button>
          <Button variant="primary" disabled={save.isPending} onClick={() => save.mutate(theirs.hash)}>
            Save mine instead
          </Button>
        </div>
      </div>
    );
  }
  return (
    <form onSubmit={submit} className="flex h-full flex-col">
      {kept && asTyped(kept.text) !== asTyped(file.text) && <p className="mx-4 mt-3 shrink-0 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">These are your words from before; they were not saved yet.</p>}
      {HINTS[file.path] && <p className="shrink-0 px-4 pt-3 text-xs text-ink-2">{HINTS[file.path]}</p>}
      <div className="min-h-0 flex-1 p-4 pb-2">
        <Textarea autoFocus aria-label={`Text of ${baseName(file.path)}`} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={onKeyDown} spellCheck className="h-full min-h-40 resize-none font-mono text-xs leading-[19px] pointer-coarse:text-base" />
      </div>
      {save.isError && (
        <p role="alert" className="shrink-0 px-4 pb-2 text-sm text-fail">
          {errorMessage(save.error)}
        </p>
      )}
      <div className="flex shrink-0 justify-end gap-2 border-t border-line px-4 py-3">
        <Button onClick={discard}>{isChanged ? "Discard" : "Cancel"}</Button>
        <Button variant="primary" type="submit" disabled={!isChanged || save.isPending}>
          {save.isPending ? "Saving…" : "Save"}
        </Button>
      </div>
    </form>
  );
}
