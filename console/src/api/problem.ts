export class Problem extends Error {
  constructor(
    /** 0 if there was no response. */
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly requestId?: string,
    readonly extensions: Record<string, unknown> = {},
  ) {
    super(detail);
    this.name = "Problem";
  }
}

/** Converts an error response to a `Problem`, even if a proxy sent a response that is not a problem object. */
export function problemOf(status: number, text: string): Problem {
  try {
    const { code, detail, title, request_id, ...extensions } = JSON.parse(text) as Record<string, string>;
    if (code) return new Problem(status, code, detail ?? title ?? code, request_id, extensions);
  } catch {
  }
  return new Problem(status, "no_answer", `A proxy between this page and the service answered with status ${status}.`);
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "console", error instanceof Error ? error.message : String(error));
}

export const NO_ID = new Problem(0, "invalid_thread_id", "A thread id is thrd_ followed by 27 to 59 letters and digits.");
