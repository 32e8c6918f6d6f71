/** Editing: which message the text of the composer takes the place of, for each agent. It is kept in localStorage with the text. */
import { useQuery } from "@tanstack/react-query";
import { create } from "zustand";
import type { Message } from "@/api/client";
import { conversationQuery } from "@/api/queries";
import { HUMAN } from "@/lib/participants";
import { readStored, writeStored } from "@/lib/storage";
import { type UnsentMessage, useLive } from "@/live";
import { wordsFor } from "@/views/composer/attachments";
import { currentText, useComposer } from "@/views/composer/composerState";

export interface Editing {
  /** The id of the message. */
  edits: string;
  /** An edited message is sent as the one before was: with or without a reply. */
  mode: "send" | "nudge";
  /** How many files come with the message. */
  files: number;
  /** What was written before the editing began: it comes back after it. */
  draft: string;
  stopsWork: boolean;
}

const useEdits = create<Record<string, Editing | null>>(() => ({}));

function setEditing(agentId: string, editing: Editing | null): void {
  writeStored(`editing.${agentId}`, editing && JSON.stringify(editing));
  useEdits.setState({ [agentId]: editing });
}

function storedEditing(agentId: string): Editing | null {
  try {
    return JSON.parse(readStored(`editing.${agentId}`) ?? "null") as Editing | null;
  } catch {
    return null;
  }
}

const found = (agentId: string, known: Editing | null | undefined): Editing | null => (known === undefined ? storedEditing(agentId) : known);
export const currentEditing = (agentId: string): Editing | null => found(agentId, useEdits.getState()[agentId]);
export const useEditing = (agentId: string): Editing | null => found(agentId, useEdits((state) => state[agentId]));

/** Put the words of a message into the composer, to be sent in its place. What is written there comes back after it. */
export function startEditing(agentId: string, { id, kind, text, attachments }: Message): void {
  const draft = currentEditing(agentId)?.draft ?? currentText(agentId);
  setEditing(agentId, { edits: id, mode: kind === "nudge" ? "nudge" : "send", files: attachments.length, draft, stopsWork: false });
  useComposer.getState().setText(agentId, attachments.length > 0 && text === wordsFor(attachments) ? "" : text);
  useComposer.setState({ wantsFocus: true });
}

/** Go on with an edited message that was not delivered: its words take the place of what is written. */
export function resumeEditing(agentId: string, { edits, mode, stopWork = false }: UnsentMessage): void {
  if (!edits) return;
  setEditing(agentId, { edits, mode, files: 0, draft: currentEditing(agentId)?.draft ?? currentText(agentId), stopsWork: stopWork });
  useComposer.getState().setText(agentId, "");
}

export function setStopsWork(agentId: string, stopsWork: boolean): void {
  const editing = currentEditing(agentId);
  if (editing) setEditing(agentId, { ...editing, stopsWork });
}

/** End the editing. What was written before it comes back, before what was written since it was sent. */
export function endEditing(agentId: string, since = ""): void {
  const editing = currentEditing(agentId);
  if (editing === null) return;
  setEditing(agentId, null);
  useComposer.getState().setText(agentId, [editing.draft, since].filter(Boolean).join("\n\n"));
}

/** Return the last message that the person wrote in an agent's conversation: the only one that can be edited. Null while a later one is on its way. */
export function lastWritten(messages: readonly Message[], unsent: readonly UnsentMessage[], agentId: string): Message | null {
  if (unsent.some((one) => one.agentId === agentId && one.state !== "refused")) return null;
  return messages.findLast((one) => one.sender === HUMAN && (one.kind === "message" || one.kind === "nudge") && (one.said_to ?? one.recipient) === agentId) ?? null;
}

export function useLastWritten(agentId: string): Message | null {
  const unsent = useLive((state) => state.unsent);
  const messages = useQuery(conversationQuery(agentId)).data?.messages;
  return lastWritten(messages ?? [], unsent, agentId);
}
