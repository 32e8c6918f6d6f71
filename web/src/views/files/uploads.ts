/** Uploads: sends files to the team one after the other, with progress. A name that is taken is asked about, never replaced unasked. */
import { useCallback, useState } from "react";
import { ApiError, errorMessage, type Schemas, toApiError } from "@/api/client";
import { keyHeaders } from "@/api/session";
import { fileSize } from "@/lib/format";
import { refreshFiles } from "@/views/files/documents";

export const MAX_UPLOAD_BYTES = 10 * 1024 ** 2;
export type IfExists = Schemas["UploadRequest"]["if_exists"];

export interface Upload {
  id: number;
  file: File;
  state: "waiting" | "sending" | "done" | "taken" | "failed";
  /** The part that is sent, from 0 to 1. */
  sent: number;
  /** Where it is now, or why it is not there. */
  text: string;
}

let nextId = 1;

export function useUploads(team: string) {
  const [uploads, setUploads] = useState<Upload[]>([]);
  const change = useCallback((id: number, now: Partial<Upload>) => setUploads((all) => all.map((one) => (one.id === id ? { ...one, ...now } : one))), []);
  const send = useCallback(
    async (upload: Upload, ifExists: IfExists) => {
      if (upload.file.size > MAX_UPLOAD_BYTES) {
        change(upload.id, { state: "failed", text: `It is larger than the ${fileSize(MAX_UPLOAD_BYTES)} that a file may have. Give the team its folder instead, in the team's settings.` });
        return;
      }
      change(upload.id, { state: "sending", sent: 0, text: "" });
      try {
        const saved = await post(team, upload.file, ifExists, (sent) => change(upload.id, { sent }));
        change(upload.id, { state: "done", sent: 1, text: saved.path });
      } catch (error) {
        const isTaken = error instanceof ApiError && error.status === 409;
        change(upload.id, { state: isTaken ? "taken" : "failed", text: isTaken ? "There is a file with this name already." : errorMessage(error) });
      }
    },
    [team, change],
  );
  const add = useCallback(
    async (files: readonly File[]) => {
      const added = files.map((file): Upload => ({ id: nextId++, file, state: "waiting", sent: 0, text: "" }));
      setUploads((all) => [...all, ...added]);
      for (const upload of added) await send(upload, "refuse");
      await refreshFiles(team);
    },
    [team, send],
  );
  const retry = useCallback(
    async (upload: Upload, ifExists: IfExists) => {
      await send(upload, ifExists);
      await refreshFiles(team);
    },
    [team, send],
  );
  const remove = useCallback((id: number) => setUploads((all) => all.filter((one) => one.id !== id)), []);
  const clear = useCallback(() => setUploads((all) => all.filter(({ state }) => state === "sending" || state === "waiting")), []);
  return { uploads, add, retry, remove, clear };
}

/** Send one file. XMLHttpRequest, because fetch does not report how much of a request is sent. */
async function post(team: string, file: File, ifExists: IfExists, onProgress: (sent: number) => void): Promise<Schemas["SavedView"]> {
  const body = JSON.stringify({ name: file.name.slice(0, 200), data: await toBase64(file), if_exists: ifExists });
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/teams/${encodeURIComponent(team)}/uploads`);
    for (const [name, value] of Object.entries({ "Content-Type": "application/json", ...keyHeaders() })) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onload = () => (request.status === 201 ? resolve(request.response as Schemas["SavedView"]) : reject(toApiError(request.status, request.response)));
    request.onerror = () => reject(new ApiError(0, "The server cannot be reached", "The file was not sent. Try again when the server is back."));
    request.send(body);
  });
}

const toBase64 = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error("The file cannot be read. A folder cannot be uploaded: choose its files."));
    reader.readAsDataURL(file);
  });
