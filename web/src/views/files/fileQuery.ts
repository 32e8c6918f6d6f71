/** Open: a path of a team's folder, as what it is. */
import { queryOptions } from "@tanstack/react-query";
import { ApiError, asError } from "@/api/client";
import { keys } from "@/api/queries";
import type { Entry } from "@/views/files/tree";

/** The server hands out this much at a time. */
export const MOST_BYTES = 8 * 2 ** 20;

export type Opened =
  | { kind: "folder"; path: string; entries: Entry[] }
  | { kind: "text"; path: string; text: string; bytes: number; isCut: boolean }
  | { kind: "image"; path: string; url: string }
  | { kind: "binary"; path: string; bytes: number };

export const rawHref = (team: string, path: string): string =>
  `/api/teams/${encodeURIComponent(team)}/files${path ? `/${path.split("/").map(encodeURIComponent).join("/")}` : ""}`;

/** Text has no zero bytes, and is what it says it is. */
export function asText(bytes: Uint8Array): string | null {
  if (bytes.subarray(0, 8000).includes(0)) return null;
  // The end may lie in the middle of a character.
  const end = bytes.length === MOST_BYTES ? bytes.length - 4 : bytes.length;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, end));
  } catch {
    const loose = new TextDecoder("utf-8").decode(bytes.subarray(0, end));
    const odd = loose.split("\ufffd").length - 1;
    return odd > loose.length / 50 ? null : loose;
  }
}

async function open(team: string, path: string): Promise<Opened> {
  const url = rawHref(team, path);
  let answer: Response;
  try {
    answer = await fetch(url);
  } catch {
    throw new ApiError(0, "The server cannot be reached", "Is `agiraph up` still running? This page tries again by itself.");
  }
  if (!answer.ok) throw asError(answer.status, await answer.json().catch(() => null));
  const type = answer.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) return { kind: "folder", path, entries: ((await answer.json()) as { entries: Entry[] }).entries };
  if (type.startsWith("image/")) return { kind: "image", path, url: `${url}?v=${encodeURIComponent(answer.headers.get("etag") ?? Date.now())}` };
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const text = asText(bytes);
  if (text === null) return { kind: "binary", path, bytes: bytes.length };
  return { kind: "text", path, text, bytes: bytes.length, isCut: bytes.length === MOST_BYTES };
}

export const openQuery = (team: string, path: string) => queryOptions({ queryKey: keys.files(team, path), queryFn: () => open(team, path) });
