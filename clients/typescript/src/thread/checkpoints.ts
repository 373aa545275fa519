import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import type { Checkpoint, Checkpoints } from "../types/checkpoint.js";
import type { Calls } from "./calls.js";

const root = "/checkpoints";
const pathOf = (checkpoint: number) => `${root}/${segment(checkpoint)}`;

export function checkpointsOf(calls: Calls): Checkpoints<any> {
  return {
    async create({ name, ...o } = {}) {
      return camel((await calls.write("POST", root, { body: JSON.stringify({ name }) }, o)).body);
    },

    async list(o) {
      return (await calls.read(root, o)).body.checkpoints.map(camel<Checkpoint>);
    },

    async get(checkpoint, o) {
      return camel((await calls.value(pathOf(checkpoint), o)).body);
    },

    async restore(checkpoint, o) {
      return camel((await calls.write("POST", pathOf(checkpoint) + "/restore", {}, o)).body);
    },

    async delete(checkpoint, o) {
      await calls.write("DELETE", pathOf(checkpoint), {}, o);
    },
  };
}
