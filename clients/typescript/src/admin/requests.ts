import { camel } from "../http/camel.js";
import type { Query, ServerRequest } from "../http/request.js";
import type { Transport } from "../http/send.js";
import { type KeyedOptions, write } from "../http/write.js";
import type { CallOptions } from "../types/options.js";

export interface Page<T> {
  items: T[];
  next?: string | undefined;
}

export interface Requests {
  readonly transport: Transport;
  get(path: string, options?: CallOptions, query?: Query): Promise<any>;
  post(path: string, content: object, options?: CallOptions): Promise<any>;
  /** Sends a write that is not safe to retry. */
  once(method: string, path: string, content: object | undefined, options?: CallOptions, query?: Query): Promise<any>;
  keyed(path: string, content: object, options?: KeyedOptions): Promise<any>;
  delete(path: string, options?: CallOptions): Promise<any>;
  list<T>(path: string, name: string, query: Query, options?: CallOptions): Promise<Page<T>>;
}

export function requestsOf(transport: Transport): Requests {
  const body = async (request: ServerRequest): Promise<any> => (await transport.json<any>(request)).body;
  return {
    transport,

    get: (path, options, query) => body({ method: "GET", path, query, options }),

    post: (path, content, options) =>
      body({ method: "POST", path, body: JSON.stringify(content), options }),

    once: (method, path, content, options, query) =>
      body({ method, path, query, body: content && JSON.stringify(content), options, once: true }),

    keyed: async (path, content, o) => (await write(transport, "POST", path, o, { body: JSON.stringify(content) })).body,

    delete: (path, options) => body({ method: "DELETE", path, options }),

    async list<T>(path: string, name: string, query: Query, options?: CallOptions) {
      const page = await body({ method: "GET", path, query, options });
      return { items: page[name].map(camel<T>), next: page.next_cursor ?? undefined };
    },
  };
}
