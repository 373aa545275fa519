import { hex } from "../../bytes.js";
import { digestOf } from "../names.js";

const encoder = new TextEncoder();
const MAX_LENGTH = 300;

/** A part of a key: hex, or a digest of a long name. */
async function part(name: string): Promise<string> {
  const text = hex(encoder.encode(name));
  return text.length <= MAX_LENGTH ? text : "~" + (await digestOf(name));
}

/** The ID of a checkpoint so that a newer one is first in the order of bytes. `g` is behind all digits. */
const newestFirst = (id: string): string => hex(encoder.encode(id).map((byte) => 255 - byte)) + "g";

/** The key of a channel's value, without the number of its part. */
export const blobKey = async (ns: string, channel: string, version: string | number): Promise<string> =>
  `b/${await part(ns)}/${await part(channel)}/${await part(String(version))}/`;

/** The prefix of the checkpoints of a namespace, or of all. */
export const checkpointsKey = async (ns: string | undefined): Promise<string> =>
  ns === undefined ? "c/" : `c/${await part(ns)}/`;

export const checkpointKey = async (ns: string, id: string): Promise<string> =>
  (await checkpointsKey(ns)) + newestFirst(id);

/** The prefix of the writes to a checkpoint. */
export const writesKey = async (ns: string, checkpoint: string): Promise<string> =>
  `w/${await part(ns)}/${await part(checkpoint)}/`;

export const taskKey = async (ns: string, checkpoint: string, task: string): Promise<string> =>
  (await writesKey(ns, checkpoint)) + (await part(task));

/** The prefix of a large value among the writes of a task, without the number of its part. */
export const valueKey = async (ns: string, checkpoint: string, task: string, place: string): Promise<string> =>
  `v/${await part(ns)}/${await part(checkpoint)}/${await part(task)}/${place}/`;
