import type { SchemaIssue } from "../types/standard-schema.js";
import { camel } from "./camel.js";
import type { ErrorCode } from "./error-code.js";

/** A problem object (RFC 9457) from the server. */
export interface Problem {
  type?: string;
  title?: string;
  status?: number;
  code?: string;
  detail?: string;
  request_id?: string;
  [member: string]: unknown;
}

export interface ErrorInit {
  status?: number | undefined;
  problem?: Problem | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Base class of all errors. Match on `code`. Messages never contain signed IDs, API keys or stored values. */
export class ThreadkeepError extends Error {
  override name = "ThreadkeepError";
  declare readonly code: ErrorCode;
  declare readonly status: number | undefined;
  /** The server's explanation for humans. */
  declare readonly detail: string | undefined;
  declare readonly requestId: string | undefined;
  declare readonly retryAfterMs: number | undefined;
  declare readonly problem: Problem | undefined;

  constructor(code: ErrorCode, message: string, { status, problem, retryAfterMs, cause }: ErrorInit = {}) {
    super(message, cause === undefined ? undefined : { cause });
    const { type, title, status: _, code: __, detail, request_id: requestId, ...rest } = problem ?? {};
    Object.assign(this, { code, status, detail, requestId, retryAfterMs, problem });
    // some errors have additional members, such as `current_version`, which must not replace members of this class
    for (const [name, value] of Object.entries(camel<object>(rest))) {
      if (!(name in this)) Object.assign(this, { [name]: value });
    }
  }
}

/** 400: the request is invalid. */
export class InvalidRequestError extends ThreadkeepError {
  override name = "InvalidRequestError";
  /** Zero-based index of the operation in a merge. */
  declare readonly operation?: number;
}

/** 401: the credentials are missing or invalid. */
export class AuthenticationError extends ThreadkeepError {
  override name = "AuthenticationError";
}

/** 403: the request comes from another site, the thread has another owner, or the API key lacks a right. */
export class ForbiddenError extends ThreadkeepError {
  override name = "ForbiddenError";
  declare readonly right?: string;
}

/** 404 */
export class NotFoundError extends ThreadkeepError {
  override name = "NotFoundError";
}

/** 409: the call conflicts with stored data or with another caller. */
export class ConflictError extends ThreadkeepError {
  override name = "ConflictError";
  /** Zero-based index of the operation in a merge. */
  declare readonly operation?: number;
  /** Time at which the other caller's turn expires. */
  declare readonly expiresAt?: string;
  /** Number of the last turn. */
  declare readonly number?: number;
  /** Number of the effect's last attempt. */
  declare readonly attempt?: number;
}

/** 410: the thread has ended. */
export class ThreadDestroyedError extends ThreadkeepError {
  override name = "ThreadDestroyedError";
}

/** 412: the condition of the write is not met. */
export class VersionMismatchError extends ThreadkeepError {
  override name = "VersionMismatchError";
  declare readonly currentVersion?: number;
}

/** 413, 414 and 431: the data is too large. */
export class TooLargeError extends ThreadkeepError {
  override name = "TooLargeError";
  declare readonly limitBytes?: number;
  declare readonly sizeBytes?: number;
  declare readonly attemptedBytes?: number;
  declare readonly limitKeys?: number;
}

/** 422: the idempotency key was already used for a different request, the item ID for a different item, or the effect ID for a different call. */
export class ReusedError extends ThreadkeepError {
  override name = "ReusedError";
}

/** 429: too many requests. */
export class RateLimitedError extends ThreadkeepError {
  override name = "RateLimitedError";
  declare readonly limit?: string;
}

/** 503: the server or its store is unavailable. */
export class UnavailableError extends ThreadkeepError {
  override name = "UnavailableError";
}

/** The server is unreachable, or the connection failed. */
export class ConnectionError extends ThreadkeepError {
  override name = "ConnectionError";
}

/** No response arrived in time. */
export class TimeoutError extends ThreadkeepError {
  override name = "TimeoutError";
}

/** The state does not match the schema. */
export class InvalidStateError extends ThreadkeepError {
  override name = "InvalidStateError";
  readonly issues: readonly SchemaIssue[];

  constructor(issues: readonly SchemaIssue[]) {
    super("invalid_state", `The state does not fit the schema (${issues.length} issues).`);
    this.issues = issues;
  }
}

/** A failure of a tool that is recorded, or that `run` throws to record it. */
export class EffectFailed extends ThreadkeepError {
  override name = "EffectFailed";
  declare readonly error: any;
  /** Number of the attempt that failed. Undefined until the failure is recorded. */
  declare attempt: number | undefined;

  /** `error` is any JSON value. */
  constructor(error: unknown, attempt?: number) {
    super("effect_failed", "effect_failed: The tool call failed.");
    Object.assign(this, { error, attempt });
  }
}

/** The tool may have run. Look up `key` in the system that the tool calls. */
export class EffectInDoubt extends ThreadkeepError {
  override name = "EffectInDoubt";
  declare readonly id: string;
  declare readonly key: string;
  declare readonly attempt: number;

  constructor(id: string, key: string, attempt: number) {
    super("effect_in_doubt", "effect_in_doubt: The tool may have run.");
    Object.assign(this, { id, key, attempt });
  }
}

const classes: { [status: number]: typeof ThreadkeepError } = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: ThreadDestroyedError,
  412: VersionMismatchError,
  413: TooLargeError,
  414: TooLargeError,
  422: ReusedError,
  429: RateLimitedError,
  431: TooLargeError,
  503: UnavailableError,
};

export function errorOf(status: number, headers: Headers, body: string): ThreadkeepError {
  let problem: Problem | undefined;
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof (parsed as Problem | null)?.code === "string") problem = parsed as Problem;
  } catch {
    // a proxy may have sent the body, in any format
  }
  const code = problem?.code ?? "unknown";
  return new (classes[status] ?? ThreadkeepError)(code, `${code}: ${problem?.detail ?? `HTTP status ${status}`}`, {
    status,
    problem,
    retryAfterMs: retryAfter(headers),
  });
}

export const ownError = (error: unknown): ThreadkeepError =>
  error instanceof ThreadkeepError ? error : new ThreadkeepError("unknown", String(error));

/** Returns whether the same request may succeed later. */
export const isTransient = (error: unknown): error is ThreadkeepError =>
  error instanceof ThreadkeepError &&
  (error.status === undefined
    ? ["connection", "timeout"].includes(error.code)
    : error.status >= 500 || [408, 429].includes(error.status));

function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  if (!text) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return ms >= 0 ? ms : undefined;
}
