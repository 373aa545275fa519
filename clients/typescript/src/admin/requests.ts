import { camel } from "../http/camel.js";
import type { Query, ServerRequest } from "../http/request.js";
import type { Sending } from "../http/send.js";
import { idempotencyKey } from "../thread/idempotency-key.js";
import type { CallOptions } from "../types/options.js";

/** Options of writes that the server remembers by a key. */
export interface KeyedOptions extends CallOptions {
  idempotencyKey?: string | undefined;
}

export interface Page<T> {
  items: T[];
  next?: string | undefined;
}

export type Requests = ReturnType<typeof requestsOf>;

/** The requests of a back end. */
export function requestsOf(sending: Sending) {
  const body = async (request: ServerRequest): Promise<any> => (await sending.json<any>(request)).body;
  return {
    sending,

    get: (path: string, options?: CallOptions, query?: Query) => body({ method: "GET", path, query, options }),

    post: (path: string, content: object, options?: CallOptions) =>
      body({ method: "POST", path, body: JSON.stringify(content), options }),

    /** A write that a repeat would perform twice. */
    once: (method: string, path: string, content: object | undefined, options?: CallOptions, query?: Query) =>
      body({ method, path, query, body: content && JSON.stringify(content), options, once: true }),

    /** A write that the server remembers by its key. */
    keyed: (path: string, content: object, { idempotencyKey: key, ...options }: KeyedOptions = {}) =>
      body({
        method: "POST",
        path,
        headers: { "idempotency-key": key ?? idempotencyKey() },
        body: JSON.stringify(content),
        options,
      }),

    delete: (path: string, options?: CallOptions) => body({ method: "DELETE", path, options }),

    async list<T>(path: string, name: string, query: Query, options?: CallOptions): Promise<Page<T>> {
      const page = await body({ method: "GET", path, query, options });
      return { items: page[name].map(camel<T>), next: page.next_cursor ?? undefined };
    },
  };
}
