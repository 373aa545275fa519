import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import type { Checkpoint, Checkpoints, CheckpointWithState, ExistingWriteOptions } from "../types/checkpoint.js";
import type { CallOptions } from "../types/options.js";
import type { Calls } from "./calls.js";
import { threadInfo } from "./thread-info.js";

export class CheckpointsOf<S> implements Checkpoints<S> {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  async create({ name, ...o }: ExistingWriteOptions & { name?: string | undefined } = {}) {
    const { body } = await this.#calls.write("POST", "/checkpoints", { body: JSON.stringify({ name }) }, o);
    return camel<Checkpoint>(body);
  }

  async list(o?: CallOptions) {
    const { body } = await this.#calls.read("/checkpoints", o);
    return body.checkpoints.map(camel<Checkpoint>);
  }

  async get(checkpoint: number, o?: CallOptions) {
    const { body } = await this.#calls.value("/checkpoints/" + segment(checkpoint), o);
    return camel<CheckpointWithState<S>>(body);
  }

  async restore(checkpoint: number, o?: ExistingWriteOptions) {
    const { body } = await this.#calls.write("POST", `/checkpoints/${segment(checkpoint)}/restore`, {}, o);
    return threadInfo(body);
  }

  async delete(checkpoint: number, o?: ExistingWriteOptions) {
    await this.#calls.write("DELETE", "/checkpoints/" + segment(checkpoint), {}, o);
  }
}
