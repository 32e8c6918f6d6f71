/** Attachments: the files of a message that is being written, with the limits of the server. Nothing is dropped without a word. */
import { fileSize } from "@/lib/format";

export const MAX_FILES = 10;
const MAX_FILE_BYTES = 10 * 2 ** 20;
const MAX_TOTAL_BYTES = 11 * 2 ** 20;
/** Characters that a message holds. */
export const MAX_CHARACTERS = 100_000;
/** A paste of more characters than this becomes a file: nobody edits it in the text field. */
export const MAX_PASTE = 10_000;

export interface Attachment {
  name: string;
  media_type: string;
  /** Base64. */
  data: string;
  bytes: number;
  /** The text of a paste that became a file, which can be put into the message after all. */
  pasted?: string;
}

/** Return the files that fit beside the known ones, and a sentence for each that does not. */
export function fitting(known: readonly Attachment[], chosen: readonly File[]): { files: File[]; problems: string[] } {
  const files: File[] = [];
  const problems: string[] = [];
  let total = known.reduce((sum, file) => sum + file.bytes, 0);
  for (const file of chosen) {
    if (known.length + files.length >= MAX_FILES) problems.push(`“${file.name}” was not attached: a message holds ${MAX_FILES} files. Send it with the next one.`);
    else if (file.size > MAX_FILE_BYTES) problems.push(`“${file.name}” was not attached: it has ${fileSize(file.size)}, and a file may have ${fileSize(MAX_FILE_BYTES)}.`);
    else if (total + file.size > MAX_TOTAL_BYTES) problems.push(`“${file.name}” was not attached: the files of a message may have ${fileSize(MAX_TOTAL_BYTES)} together. Send it with the next one.`);
    else {
      files.push(file);
      total += file.size;
    }
  }
  return { files, problems };
}

export async function toAttachment(file: File): Promise<Attachment> {
  return { name: file.name.slice(0, 200), media_type: mediaType(file), data: await readBase64(file), bytes: file.size };
}

/**
 * Return the files that a paste attaches. Programs put more than one form of the same thing into the clipboard: beside a
 * text, a spreadsheet puts a picture of it, and beside a file, a file manager puts its name. Words are never lost: they
 * are pasted instead of the picture.
 */
export function pastedFiles(pasted: Pick<DataTransfer, "files" | "types" | "getData">): File[] {
  const files = [...pasted.files];
  const lines = pasted.getData("text/plain").split(/[\r\n]+/).filter((line) => line.trim() !== "");
  const isName = (line: string) => line.startsWith("file://") || files.some(({ name }) => line === name || line.endsWith(`/${name}`) || line.endsWith(`\\${name}`));
  return lines.length === 0 || (!pasted.types.includes("text/html") && lines.every(isName)) ? files : [];
}

/** Return a file of a message that was not delivered, for a message that is being written. */
export function takenBack(file: { name: string; media_type: string; data: string }): Attachment {
  return { ...file, bytes: Math.floor((file.data.replace(/=+$/, "").length * 3) / 4) };
}

/** Return a long text as a file. The first one is called pasted-text.txt, the next pasted-text-2.txt. */
export function textAsFile(text: string, known: readonly Attachment[]): File {
  const count = known.filter((file) => file.pasted !== undefined).length;
  return new File([text], `pasted-text${count > 0 ? `-${count + 1}` : ""}.txt`, { type: "text/plain" });
}

/** Return the words of a message that consists of files alone. The server would write the same: no names, which are not the person's words. */
export const wordsFor = (files: readonly unknown[]): string => (files.length === 1 ? "(I send a file.)" : `(I send ${files.length} files.)`);

/** Return the sentence that says that a message is too long, or null. */
export function tooLong(text: string): string | null {
  const over = text.trim().length - MAX_CHARACTERS;
  if (over <= 0) return null;
  return `The message has ${(over + MAX_CHARACTERS).toLocaleString("en")} characters; ${MAX_CHARACTERS.toLocaleString("en")} fit. Shorten it by ${over.toLocaleString("en")}, or send it as a file.`;
}

/** Return the address of a picture that the page itself can draw, or null. A vector picture could hold a program; it is shown as a file. */
export function thumbnail(file: { media_type: string; data: string }): string | null {
  return /^image\/(png|jpeg|gif|webp)$/.test(file.media_type) ? `data:${file.media_type};base64,${file.data}` : null;
}

/** Return the file's media type; the server refuses types with other characters. */
function mediaType(file: File): string {
  return /^[a-z]+\/[A-Za-z0-9.+-]+$/.test(file.type) ? file.type : "application/octet-stream";
}

function readBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}

/** Return where Files shows a file of a message: among the uploads. The server makes the same path. */
export function attachedPath(message: string, index: number, name: string): string {
  const plain = name.replace(/[/\\\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "_");
  return `${ATTACHED}/${message}/${index}/${/[^. ]/.test(plain) ? plain : "file"}`;
}
const ATTACHED = "user_uploads/attached";
/** Whether a path of Files is that of a message's file. */
export const isAttached = (path: string): boolean => path.startsWith(`${ATTACHED}/`);
