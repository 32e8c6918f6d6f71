/** Client: the API with types, and every failure as one error that says what to do. */
import createClient from "openapi-fetch";
import type { components, paths } from "@/api/types";

export type Schemas = components["schemas"];
export type Team = Schemas["TeamView"];
export type Agent = Schemas["AgentView"];
export type Message = Schemas["MessageView"];
export type InboxItem = Schemas["InboxItem"];
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
/** Whoever shows the sign-in page hears of the first answer that asks for it. */
export const onSignedOut = (listener: SignedOutListener): void => void (reportSignedOut = listener);

async function fetchOrApiError(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch {
    throw new ApiError(0, "The server cannot be reached", "Is `agiraph up` still running? This page tries again by itself.");
  }
}

export const api = createClient<paths>({ baseUrl: globalThis.location?.origin ?? "", fetch: fetchOrApiError });

interface ApiResponse<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer's data, or an ApiError. */
export async function unwrap<T>(pending: Promise<ApiResponse<T>>): Promise<T> {
  const { data, error, response } = await pending;
  if (response.ok) return data as T;
  throw toApiError(response.status, error);
}

export function toApiError(status: number, body: unknown): ApiError {
  if (status === 401) reportSignedOut();
  const problem = (typeof body === "object" && body !== null ? body : {}) as Partial<Schemas["Problem"]>;
  const detail = problem.detail ?? (typeof body === "string" ? body.slice(0, 300) : "");
  return new ApiError(status, problem.title ?? `The server answered ${status}`, detail, problem.faults ?? []);
}

/** What to say about anything that was thrown. */
export function errorMessage(error: unknown): string {
  if (error instanceof ApiError) return error.detail || error.title;
  return error instanceof Error ? error.message : String(error);
}
