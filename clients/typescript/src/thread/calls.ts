import type { ServerRequest } from "../http/request.js";
import type { Sending } from "../http/send.js";
import type { CallOptions, WriteOptions } from "../types/options.js";
import { ifMatchOf } from "./answers.js";
import { idempotencyKey } from "./idempotency-key.js";
import { Queue } from "./queue.js";

type Part = Pick<ServerRequest, "query" | "body" | "contentType" | "names" | "headers">;
type Answer = { body: any; text: string; headers: Headers };

/** The requests of one `Thread` object. */
export class Calls {
  readonly queue = new Queue();

  constructor(
    readonly sending: Sending,
    readonly turnToken?: string,
  ) {}

  get json() {
    return this.sending.settings.json;
  }

  request(method: string, path: string, part: Part, options: CallOptions | undefined): ServerRequest {
    return { method, path: (thread) => thread + path, ...part, options };
  }

  /** A read whose answer is JSON of the client itself. */
  read(path: string, o: CallOptions | undefined, query?: ServerRequest["query"]): Promise<Answer> {
    return this.sending.json(this.request("GET", path, { query }, o));
  }

  /** A read whose answer contains values of the application. */
  value(path: string, o: CallOptions | undefined, query?: ServerRequest["query"]): Promise<{ body: any; headers: Headers }> {
    return this.sending.value(this.request("GET", path, { query }, o));
  }

  /** A write, behind the earlier ones. */
  write(method: string, path: string, part: Part = {}, o: WriteOptions = {}): Promise<Answer> {
    const request = this.writeRequest(method, path, part, o);
    return this.queue.run(() => this.sending.json(request), o.signal);
  }

  /** A write with one idempotency key for all attempts. */
  writeRequest(method: string, path: string, part: Part, o: WriteOptions): ServerRequest {
    return this.request(
      method,
      path,
      {
        ...part,
        query: { ...part.query, ttl_seconds: o.ttlSeconds },
        headers: {
          "idempotency-key": o.idempotencyKey ?? idempotencyKey(),
          "if-match": ifMatchOf(o.ifMatch),
          "x-turn-token": this.turnToken,
        },
      },
      o,
    );
  }
}
