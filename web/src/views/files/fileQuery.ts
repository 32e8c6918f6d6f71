/** fileQuery: fetch a path of the team's folder as folder, text, image or binary. */
import { queryOptions } from "@tanstack/react-query";
import { lostServer, toApiError } from "@/api/client";
import { queryKeys } from "@/api/queries";
import { fetchApi, withKey, withQuery } from "@/api/session";
import type { Entry } from "@/views/files/tree";

/** The server sends at most this much of a file. */
const MAX_BYTES = 8 * 2 ** 20;

export type FileContent =
  | { kind: "folder"; path: string; entries: Entry[] }
  | { kind: "text"; path: string; text: string; bom: string; isLossy: boolean; bytes: number; isTruncated: boolean; sources: string[]; hash: string }
  | { kind: "image"; path: string; url: string; sources: string[] }
  | { kind: "binary"; path: string; bytes: number; sources: string[] };

/** Return the address of a path. Each segment is encoded, because agents choose the file names. */
const addressOf = (team: string, path: string): string =>
  `/api/teams/${encodeURIComponent(team)}/files${path ? `/${path.split("/").map(encodeURIComponent).join("/")}` : ""}`;

/** Return the URL of a path's raw content, for a link or an image. */
export const rawHref = (team: string, path: string): string => withKey(addressOf(team, path));

/** Return the URL of a zip file with a folder of the team, or with all published results. */
export const archiveHref = (team: string, what: { path: string } | { results: true }): string =>
  withKey(withQuery(`/api/teams/${encodeURIComponent(team)}/archive`, "results" in what ? { results: "true" } : { path: what.path }));

interface DecodedText {
  text: string;
  /** The byte order mark with which the file begins, or nothing. Who saves the text writes it again. */
  bom: string;
  /** Whether some bytes are not UTF-8. They are shown as U+FFFD, so the file cannot be made again from the text. */
  isLossy: boolean;
}

/** Return the bytes as text, or null if they are not text: they contain zero bytes or too many invalid characters. */
export function decodeText(bytes: Uint8Array): DecodedText | null {
  if (bytes.subarray(0, 8000).includes(0)) return null;
  // The server may have cut the file inside a multi-byte character.
  const whole = bytes.subarray(0, bytes.length === MAX_BYTES ? bytes.length - 4 : bytes.length);
  const bom = [0xef, 0xbb, 0xbf].every((byte, at) => whole[at] === byte) ? "\ufeff" : "";
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(whole), bom, isLossy: false };
  } catch {
    const text = new TextDecoder("utf-8").decode(whole);
    const invalidCount = text.split("\ufffd").length - 1;
    return invalidCount > text.length / 50 ? null : { text, bom, isLossy: true };
  }
}

/** Return who else wrote words of a file. The server names nobody if only the team and its persons did. */
const sourcesOf = (headers: Headers): string[] => JSON.parse(headers.get("agiraph-sources") ?? "[]") as string[];

async function fetchPath(team: string, path: string): Promise<FileContent> {
  let response: Response;
  try {
    response = await fetchApi(addressOf(team, path));
  } catch {
    throw lostServer("GET");
  }
  if (!response.ok) throw toApiError(response.status, await response.json().catch(() => null));
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) return { kind: "folder", path, entries: ((await response.json()) as { entries: Entry[] }).entries };
  const sources = sourcesOf(response.headers);
  // An <img> element loads the image by URL: SVG scripts do not run there. The ETag makes the URL change with the file.
  if (type.startsWith("image/")) return { kind: "image", path, url: withQuery(rawHref(team, path), { v: response.headers.get("etag") ?? String(Date.now()) }), sources };
  const bytes = new Uint8Array(await response.arrayBuffer());
  const decoded = decodeText(bytes);
  if (decoded === null) return { kind: "binary", path, bytes: bytes.length, sources };
  return { kind: "text", path, ...decoded, bytes: bytes.length, isTruncated: bytes.length === MAX_BYTES, sources, hash: (response.headers.get("etag") ?? "").replace(/^W\/|"/g, "") };
}

export const fileQuery = (team: string, path: string) => queryOptions({ queryKey: queryKeys.files(team, path), queryFn: () => fetchPath(team, path) });
