/** Sending: what is written to an agent goes to the outbox, and leaves the composer once it is there. */
import type { Agent } from "@/api/client";
import { errorMessage } from "@/api/client";
import { inOrder } from "@/lib/lanes";
import { randomId } from "@/lib/randomId";
import { type NewMessage, sendMessage, type TakeBack, takeBackUnsent, type UnsentMessage } from "@/live";
import { takenBack, wordsFor } from "@/views/composer/attachments";
import { currentEditing, endEditing, resumeEditing } from "@/views/composer/editing";
import { currentFiles, currentReferences, currentText, restoreFiles, useComposer } from "@/views/composer/composerState";
import { mentionedIn, withLinks } from "@/views/composer/references";

/** The last message to each agent that was not sent. The same message sent again has the same client id, so that it arrives once. */
const failed = new Map<string, NewMessage>();

/** Send what is written to an agent. Resolve to a sentence if it was not sent and stays in the composer, and to null otherwise. */
export function sendWritten(agentId: string, agents: Agent[], mode: NewMessage["mode"]): Promise<string | null> {
  // Enter may be pressed again at once: what the first one sends has left the composer then.
  const editing = currentEditing(agentId)?.edits;
  // What was written before the editing has come back then: it is not sent by the second press.
  return inOrder(`send ${agentId}`, async () => (currentEditing(agentId)?.edits === editing ? send(agentId, agents, mode) : null));
}

async function send(agentId: string, agents: Agent[], mode: NewMessage["mode"]): Promise<string | null> {
  // Files that an earlier page kept belong to the message, also if it is sent right after a reload.
  await restoreFiles(agentId);
  const [text, files, editing] = [currentText(agentId), currentFiles(agentId), currentEditing(agentId)];
  if (text.trim() === "" && files.length === 0) return null;
  const message: NewMessage = {
    clientId: randomId(),
    agentId,
    mode,
    text: withLinks(text.trim(), currentReferences(agentId)) || wordsFor(files),
    attachments: files.map(({ name, media_type, data }) => ({ name, media_type, data })),
    mentions: mentionedIn(text, agents).map((one) => one.id),
    ...(editing && { mode: editing.mode, edits: editing.edits, stopWork: editing.stopsWork }),
  };
  const before = failed.get(agentId);
  if (before && isSame(before, message)) message.clientId = before.clientId;
  try {
    await sendMessage(message);
  } catch (error) {
    failed.set(agentId, message);
    return `${errorMessage(error)} Your message is still in the text field: this browser did not store it to send it later.`;
  }
  failed.delete(agentId);
  useComposer.getState().clear(agentId, { text, files });
  endEditing(agentId, currentText(agentId));
  return null;
}

/** Put a message that was not delivered back into the composer, as what it was: with or without a reply. Its row disappears at once: nobody sends what is being edited. */
export function editUnsent(unsent: UnsentMessage): Promise<TakeBack> {
  const { agentId, text, attachments, mode } = unsent;
  const { putBefore, setNudge } = useComposer.getState();
  const putIntoComposer = () => {
    // One that was refused is not the last message any more.
    if (unsent.state === "queued") resumeEditing(agentId, unsent);
    setNudge(agentId, mode === "nudge" && !unsent.edits);
    return putBefore(agentId, text, attachments.map(takenBack));
  };
  // What is being sent leaves the composer first: it is found at the beginning of the text.
  return takeBackUnsent(unsent, () => inOrder(`send ${agentId}`, putIntoComposer));
}

const isSame = (one: NewMessage, other: NewMessage): boolean => JSON.stringify({ ...one, clientId: "" }) === JSON.stringify({ ...other, clientId: "" });
