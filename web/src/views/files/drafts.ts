/** Drafts: the words that a person has written into a file and not saved, kept in localStorage until they are saved or discarded. */
import { readStored, writeStored } from "@/lib/storage";

export interface Draft {
  text: string;
  /** The hash of the content that the draft began with. */
  from: string;
}

const draftKey = (team: string, path: string): string => `draft.${team}.${path}`;

export function readDraft(team: string, path: string): Draft | null {
  try {
    return JSON.parse(readStored(draftKey(team, path)) ?? "null") as Draft | null;
  } catch {
    return null;
  }
}

export const writeDraft = (team: string, path: string, draft: Draft | null): void => writeStored(draftKey(team, path), draft && JSON.stringify(draft));
