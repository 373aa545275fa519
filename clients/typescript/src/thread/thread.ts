import { integer, parseWithLongIntegers } from "../http/integers.js";
import { NotFoundError, ThreadkeepError } from "../http/errors.js";
import type { Sending } from "../http/send.js";
import { listen } from "../events/listen.js";
import type { ExistingWriteOptions } from "../types/checkpoint.js";
import type { EventOptions } from "../types/events.js";
import type { Operation, OperationResult } from "../types/operation.js";
import type { CallOptions, WriteOptions } from "../types/options.js";
import type { Receipt, Snapshot } from "../types/receipt.js";
import type { StandardSchemaV1 } from "../types/standard-schema.js";
import type { ForkOptions, Thread } from "../types/thread.js";
import type { TurnOptions } from "../types/turn.js";
import { etagOf, receiptOf, versionOf } from "./answers.js";
import { Calls } from "./calls.js";
import { CheckpointsOf } from "./checkpoints.js";
import { encode, mergeText, objectText } from "./encode.js";
import { HistoryOf } from "./history.js";
import { threadInfo } from "./thread-info.js";
import { takeTurn } from "./turn.js";
import { updateLoop } from "./update.js";
import { validate } from "./validate.js";

type Schema = StandardSchemaV1<unknown, any> | undefined;
type Merged = Receipt & { results: OperationResult[] };
type MergeAnswer = { body: any; text: string; headers: Headers };

/** Makes a thread of the same client, named by its ID. */
export type ThreadById = (id: string, signedId: string | undefined, schema: Schema) => Thread<any>;

// a URL cannot carry these keys; a merge can
const isOdd = (key: string) => /^\.{0,2}$/.test(key);

/** Threads do not know the types of their values: those are the compiler's. */
export class ThreadOf implements Thread<any> {
  readonly checkpoints;
  readonly history;
  readonly #calls: Calls;
  readonly #schema: Schema;
  readonly #byId: ThreadById;

  constructor(sending: Sending, schema: Schema, byId: ThreadById, turnToken?: string) {
    this.#calls = new Calls(sending, turnToken);
    this.#schema = schema;
    this.#byId = byId;
    this.checkpoints = new CheckpointsOf<any>(this.#calls);
    this.history = new HistoryOf(this.#calls);
  }

  get id() {
    return this.#calls.sending.identity.id;
  }

  get signedId() {
    return this.#calls.sending.identity.signedId;
  }

  async info(o?: CallOptions) {
    return threadInfo((await this.#calls.read("", o)).body);
  }

  async read({ keys, ...o }: CallOptions & { keys?: readonly string[] | undefined } = {}): Promise<Snapshot<any>> {
    const method = keys && !keys.length ? "HEAD" : "GET";
    const { body, headers } = await this.#calls.sending.value(
      this.#calls.request(method, "/state", { query: { key: keys } }, o),
    );
    const state = this.#schema && !keys ? await validate(body, this.#schema) : body || {};
    const etag = etagOf(headers);
    return { state, version: versionOf(etag), etag };
  }

  async get(key: string, o: CallOptions & { tail?: number | undefined; offset?: number | undefined; limit?: number | undefined } = {}) {
    if (isOdd(key)) return (await this.read({ ...o, keys: [key] })).state[key];
    try {
      const { tail, offset, limit, ...rest } = o;
      return (await this.#calls.value(at(key), rest, { tail, offset, limit })).body;
    } catch (error) {
      if (error instanceof ThreadkeepError && error.code === "key_not_found") return undefined;
      throw error;
    }
  }

  async has(key: string, o?: CallOptions) {
    if (isOdd(key)) return Object.hasOwn((await this.read({ ...o, keys: [key] })).state, key);
    try {
      await this.#calls.sending.send(this.#calls.request("HEAD", at(key), {}, o));
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  async keys(o?: CallOptions): Promise<string[]> {
    return (await this.#calls.read("/keys", o)).body;
  }

  async set(key: string, value: unknown, o?: WriteOptions) {
    if (isOdd(key)) return this.#mergeOne({ op: "set", key, value }, o);
    return receipt(await this.#calls.write("PUT", at(key), { body: encode(this.#calls.json, value) }, o));
  }

  async delete(key: string, o?: WriteOptions): Promise<Receipt & { deleted: boolean }> {
    if (isOdd(key)) return this.#mergeOne({ op: "delete", key }, o);
    const answer = await this.#calls.write("DELETE", at(key), {}, o);
    return { ...receipt(answer), deleted: answer.body.deleted };
  }

  async push(key: string, value: any, { maxRecords, ...o }: WriteOptions & { maxRecords?: number | undefined } = {}) {
    if (isOdd(key)) return this.#mergeOne({ op: "push", key, value, maxRecords }, o);
    const part = { body: encode(this.#calls.json, value), query: { max_records: maxRecords } };
    const answer = await this.#calls.write("POST", at(key) + "/push", part, o);
    return { ...receipt(answer), length: answer.body.length };
  }

  async increment(key: string, by: number | bigint = 1, o?: WriteOptions) {
    if (isOdd(key)) return this.#mergeOne({ op: "increment", key, by }, o);
    const part = { body: objectText({ by: by.toString() }) };
    const answer = await this.#calls.write("POST", at(key) + "/increment", part, o);
    const { value } = parseWithLongIntegers(answer.text) as { value: number | string };
    return { ...receipt(answer), value: integer(value)! };
  }

  async merge(operations: readonly Operation<any>[], o?: WriteOptions) {
    const part = { body: mergeText(this.#calls.json, operations) };
    return this.#merged(await this.#calls.write("PATCH", "/state", part, o));
  }

  async patch(mergePatch: object, o?: WriteOptions) {
    const part = { body: encode(this.#calls.json, mergePatch), contentType: "application/merge-patch+json" };
    return receipt(await this.#calls.write("PATCH", "/state", part, o));
  }

  async replace(state: object, o?: WriteOptions) {
    return receipt(await this.#calls.write("PUT", "/state", { body: encode(this.#calls.json, state) }, o));
  }

  async clear(o?: WriteOptions) {
    return receipt(await this.#calls.write("DELETE", "/state", {}, o));
  }

  async update(
    keys: string | readonly string[],
    change: Parameters<typeof updateLoop<any>>[1],
    o: WriteOptions = {},
  ) {
    const { signal, timeoutMs } = o;
    const read = () => this.read({ keys: [keys].flat(), signal, timeoutMs });
    const merge = async (operations: readonly Operation<any>[], ifMatch: string | number) => {
      const part = { body: mergeText(this.#calls.json, operations) };
      const request = this.#calls.writeRequest("PATCH", "/state", part, { ...o, ifMatch });
      return this.#merged(await this.#calls.sending.json(request));
    };
    return this.#calls.queue.run(() => updateLoop(read, change, merge, o), signal);
  }

  async configure(
    { metadata, ttlSeconds }: { metadata?: object | undefined; ttlSeconds?: number | undefined },
    o?: ExistingWriteOptions,
  ) {
    const body = JSON.stringify({ metadata, ttl_seconds: ttlSeconds });
    return threadInfo((await this.#calls.write("PATCH", "", { body }, o)).body);
  }

  async destroy(o?: ExistingWriteOptions) {
    await this.#calls.write("DELETE", "", { names: "fresh" }, o);
  }

  async turn(o: TurnOptions = {}) {
    return takeTurn<any>(this.#calls, o, (token) => new ThreadOf(this.#calls.sending, this.#schema, this.#byId, token));
  }

  async fork({ id, owner, metadata, fromCheckpoint, include, ...o }: ForkOptions = {}): Promise<Thread<any>> {
    const body = JSON.stringify({ id, owner, metadata, from_checkpoint: fromCheckpoint, include });
    const { id: newId, signedId } = threadInfo(
      (await this.#calls.write("POST", "/fork", { body, names: "other" }, o)).body,
    );
    return this.#byId(newId, signedId ?? undefined, this.#schema);
  }

  async rotate(o?: ExistingWriteOptions) {
    const info = threadInfo((await this.#calls.write("POST", "/rotate", { names: "fresh" }, o)).body);
    if (info.signedId) this.#calls.sending.identity.move(info.signedId);
    return info;
  }

  events(o?: EventOptions) {
    return listen(this.#calls.sending, o);
  }

  #merged({ body, text, headers }: MergeAnswer): Merged {
    const { results } = body;
    if (results.some(({ value }: OperationResult) => value !== undefined && !Number.isSafeInteger(value))) {
      const exact = parseWithLongIntegers(text) as { results: { value?: number | string }[] };
      results.forEach((result: OperationResult, index: number) => {
        if (result.value !== undefined) result.value = integer(exact.results[index]!.value)!;
      });
    }
    if (this.#calls.json !== JSON && results.some(({ values }: OperationResult) => values)) {
      const own = this.#calls.json.parse(text) as { results: OperationResult[] };
      results.forEach((result: OperationResult, index: number) => {
        if (result.values) result.values = own.results[index]!.values!;
      });
    }
    return { ...receiptOf(body, headers), results };
  }

  async #mergeOne(operation: Operation<any>, o?: WriteOptions): Promise<any> {
    const { results, ...receipt } = await this.merge([operation], o);
    return { ...receipt, ...results[0] };
  }
}

const at = (key: string) => "/state/" + encodeURIComponent(key);

const receipt = ({ body, headers }: MergeAnswer): Receipt => receiptOf(body, headers);
