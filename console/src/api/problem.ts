/** An error that the service answered with, or that kept it from answering. */
export class Problem extends Error {
  constructor(
    /** 0 without an answer. */
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly requestId?: string,
    /** The other members of the answer. */
    readonly more: Record<string, unknown> = {},
  ) {
    super(detail);
    this.name = "Problem";
  }
}

/** The problem in an answer. An answer of a proxy has no members. */
export function problemOf(status: number, text: string): Problem {
  try {
    const { code, detail, title, request_id, ...more } = JSON.parse(text) as Record<string, string>;
    if (code) return new Problem(status, code, detail ?? title ?? code, request_id, more);
  } catch {
    // not from the service
  }
  return new Problem(status, "no_answer", `Something between this page and the service answered ${status}.`);
}

/** Any error as a problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "console", error instanceof Error ? error.message : String(error));
}

/** A search for an id that is none. */
export const NO_ID = new Problem(0, "invalid_thread_id", "An id of a thread is thrd_ with 27 to 59 letters and digits behind it.");
