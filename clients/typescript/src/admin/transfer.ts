import { checkDefined } from "../defined.js";
import { connectionError } from "../http/attempt.js";
import { camel } from "../http/camel.js";
import { errorOf, ThreadkeepError } from "../http/errors.js";
import { prepare } from "../http/prepare.js";
import { segment } from "../http/request.js";
import { linked, orAbort } from "../http/wait.js";
import type { CallOptions } from "../types/options.js";
import type { ThreadInfo } from "../types/receipt.js";
import type { Requests } from "./requests.js";

/** Exports and imports threads as JSON documents. A document is a string, because parsing would round large numbers. */
export interface Transfer {
  export(threadId: string, o?: CallOptions): Promise<string>;
  /**
   * Iterates over the threads of `owner`, or over all threads. If the server cannot read some threads, the iteration
   * ends with an `unreadable_threads` error that lists their `threadIds`.
   */
  exportAll(
    o?: CallOptions & { owner?: string | undefined; cursor?: string | undefined },
  ): AsyncIterableIterator<string>;
  /** Imports a thread. Without `ifExists`, throws a `ConflictError` if the thread exists. */
  importDocument(
    document: string,
    o?: CallOptions & { ifExists?: "replace" | "skip" | undefined },
  ): Promise<ThreadInfo>;
}

export const transferOf = (requests: Requests): Transfer => ({
  async export(threadId, options) {
    const path = `/v1/threads/${segment(threadId)}/export`;
    return (await requests.transport.json({ method: "GET", path, options })).text;
  },

  async *exportAll(options = {}) {
    checkDefined(options, "owner");
    const { owner, cursor, ...o } = options;
    const unreadable: string[] = [];
    for (let after = cursor; ; ) {
      let control: ControlLine | undefined;
      for await (const line of lines(requests, { owner, cursor: after }, o)) {
        control = controlLineOf(line);
        if (!control) yield line;
        else if (control.error) unreadable.push(control.thread_id!);
      }
      if (control?.complete) break;
      if (!control?.cursor) throw connectionError(undefined);
      after = control.cursor;
    }
    if (unreadable.length) {
      const message = `The server could not read ${unreadable.length} threads of the export.`;
      throw new ThreadkeepError("unreadable_threads", message, { problem: { thread_ids: unreadable } });
    }
  },

  async importDocument(document, { ifExists, ...options } = {}) {
    const query = { if_exists: ifExists };
    const request = { method: "POST", path: "/v1/threads/import", query, body: document, options, once: !ifExists };
    return camel((await requests.transport.json<object>(request)).body);
  },
});

interface ControlLine {
  error?: unknown;
  thread_id?: string;
  cursor?: string;
  complete?: unknown;
}

function controlLineOf(line: string): ControlLine | undefined {
  if (line.length > 1_000) return undefined;
  const value = JSON.parse(line) as ControlLine & { format?: unknown };
  return value.format === undefined ? value : undefined;
}

async function* lines(
  { transport: { settings, identity } }: Requests,
  query: { owner: string | undefined; cursor: string | undefined },
  { signal: outer, timeoutMs = settings.timeoutMs }: CallOptions,
): AsyncGenerator<string, void> {
  const controller = linked(outer);
  const { signal } = controller;
  const within = async <T>(promise: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => controller.abort(connectionError(undefined)), timeoutMs);
    try {
      return await orAbort(promise, signal);
    } catch (error) {
      throw signal.aborted || error instanceof ThreadkeepError ? error : connectionError(error);
    } finally {
      clearTimeout(timer);
    }
  };
  const [url, init] = await prepare(settings, { method: "GET", path: "/v1/export", query }, await identity.sender());
  try {
    const response = await within(settings.fetch(url, { ...init, signal }));
    if (!response.ok) throw errorOf(response.status, response.headers, await within(response.text()));
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await within(reader.read());
      const pieces = (done ? "" : decoder.decode(value, { stream: true })).split("\n");
      pieces[0] = rest + pieces[0];
      rest = pieces.pop()!;
      yield* pieces.filter((piece) => piece);
      if (done) return rest ? yield rest : undefined;
    }
  } finally {
    controller.abort();
  }
}
