/** Client: the typed HTTP API. Every failure becomes an ApiError with a text for the person. */
import createClient from "openapi-fetch";
import { keyHeaders } from "@/api/session";
import type { components, paths } from "@/api/types";
import { randomId } from "@/lib/randomId";

export type Schemas = components["schemas"];
export type Team = Schemas["TeamView"];
export type TeamOverview = Schemas["TeamOverview"];
export type MemberOverview = Schemas["MemberOverview"];
export type Agent = Schemas["AgentView"];
export type Message = Schemas["MessageView"];
export type InboxItem = Schemas["InboxItem"];
/** An inbox item as lists show it: an item is one, with all its words. */
export type InboxRow = Schemas["InboxRow"];
export type Found = Schemas["FoundView"];
export type WorkNode = Schemas["NodeView"];

export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 when the server could not be reached. */
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly fieldErrors: Schemas["FieldError"][] = [],
  ) {
    super(detail || title);
  }

  get isOffline(): boolean {
    return this.status === 0;
  }
}

type SignedOutListener = () => void;
let reportSignedOut: SignedOutListener = () => {};
/** Register the function that is called when the server answers 401 (not signed in). */
export const onSignedOut = (listener: SignedOutListener): void => void (reportSignedOut = listener);

/** Return the error of a request without a response. The page repeats only requests that read. */
export function lostServer(method: string): ApiError {
  // The text about what a person did stands there until they try again, also when the server is back.
  const detail = method === "GET" ? "The server does not answer, and this is not cached in this browser. Is `agiraph up` still running? This page tries again by itself." : "The server did not answer, so this may not be done. Try again when it is back.";
  return new ApiError(0, "The server cannot be reached", detail);
}

async function fetchOrApiError(request: Request): Promise<Response> {
  for (const [name, value] of Object.entries(keyHeaders())) request.headers.set(name, value);
  try {
    return await fetch(request);
  } catch {
    throw lostServer(request.method);
  }
}

export const api = createClient<paths>({ baseUrl: globalThis.location?.origin ?? "", fetch: fetchOrApiError });

interface ApiResponse<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return the data of a response; throw an ApiError if the server refused the request. */
export async function unwrap<T>(pending: Promise<ApiResponse<T>>): Promise<T> {
  const { data, error, response } = await pending;
  if (response.ok) return data as T;
  throw toApiError(response.status, error);
}

/** Return the ApiError of a response. `body` is a problem document (RFC 9457), or any text from a proxy. */
export function toApiError(status: number, body: unknown): ApiError {
  if (status === 401) reportSignedOut();
  const problem = (typeof body === "object" && body !== null ? body : {}) as Partial<Schemas["Problem"]>;
  const detail = problem.detail ?? (typeof body === "string" ? body.slice(0, 300) : "");
  return new ApiError(status, problem.title ?? `The server answered ${status}`, detail, problem.faults ?? []);
}

/**
 * Return the idempotency key of the next request, after one with `key` succeeded (`error` is null) or failed.
 *
 * A request that the server refused had no effect, so the next one is new. After a lost response the key stays: the
 * server may have done what was asked, and does it once for each key.
 */
export function nextKey(key: string, error: unknown): string {
  const isAnswered = error === null || (error instanceof ApiError && error.status >= 400 && error.status < 500);
  return isAnswered ? randomId() : key;
}

/** Return the text to show for anything that was thrown. */
export function errorMessage(error: unknown): string {
  // The server marks commands and files as Markdown does. Here they stand in plain text.
  if (error instanceof ApiError) return (error.detail || error.title).replace(/`([^`\n]+)`/g, "“$1”");
  return error instanceof Error ? error.message : String(error);
}
