/** Answering: while an agent's question is open, what is typed below answers it. */
import { X } from "lucide-react";
import { useEffect, useState } from "react";
import type { InboxRow } from "@/api/client";
import { inOrder } from "@/lib/lanes";
import { useAnswer } from "@/parts/answer";
import { isLate, useTeamQuestions } from "@/parts/unanswered";
import { Literal } from "@/reading/Literal";
import { withoutEmphasis } from "@/reading/plainText";
import { Button, IconButton } from "@/ui";
import { currentReferences, currentText, useComposer } from "@/views/composer/composerState";
import { withLinks } from "@/views/composer/references";

interface Answering {
  question: InboxRow["message"];
  /** Resolve to a sentence if the answer was not taken and stays in the composer, and to null otherwise. */
  send: () => Promise<string | null>;
  /** Whether what is typed answers it. */
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/** Return the question that what is typed may answer, or null. It does not if the person had begun to write before the question came. Files, a message to others and one without a reply are messages. */
export function useAnswering(team: string, agent: string, { isPlain }: { isPlain: boolean }): Answering | null {
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const questions = useTeamQuestions(team).filter((item) => item.message.sender === agent && item.message.kind === "question" && !isLate(item));
  const question = questions[0]?.message;
  const id = question?.id;
  useEffect(() => {
    if (id) setChosen((known) => (known.has(id) ? known : new Map(known).set(id, currentText(agent).trim() === "")));
  }, [id, agent]);
  const { answer } = useAnswer(question?.id ?? "");
  if (!question || !isPlain) return null;
  const send = () =>
    inOrder(`send ${agent}`, async () => {
      const text = currentText(agent);
      if (text.trim() === "") return null;
      const problem = await answer({ text: withLinks(text.trim(), currentReferences(agent)) });
      if (problem === null) useComposer.getState().clear(agent, { text, files: [] });
      return problem;
    });
  return { question, send, isOn: chosen.get(question.id) ?? false, onChange: (isOn) => setChosen(new Map(chosen).set(question.id, isOn)) };
}

export const AnsweringChip = ({ question, isOn, onChange }: Answering) => (
  <p role="status" className="flex items-center gap-1 pt-1.5 pr-2 pl-3.5 text-xs font-medium text-wait">
    <span dir="ltr" className="literal min-w-0 flex-1 truncate">
      {isOn ? "Answering" : "Not an answer to"}: <Literal text={withoutEmphasis(question.text.split("\n", 1)[0]!)} keepEmoji />
    </span>
    {isOn ? (
      <IconButton label="Write a message instead" onClick={() => onChange(false)}>
        <X className="size-3.5" />
      </IconButton>
    ) : (
      <Button size="sm" onClick={() => onChange(true)}>
        Answer it
      </Button>
    )}
  </p>
);
