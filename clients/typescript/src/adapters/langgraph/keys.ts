import { hex } from "../../bytes.js";
import { digestOf } from "../names.js";

const encoder = new TextEncoder();
const MAX_LENGTH = 300;

async function part(name: string): Promise<string> {
  const text = hex(encoder.encode(name));
  return text.length <= MAX_LENGTH ? text : "~" + (await digestOf(name));
}

/** Encodes a checkpoint ID so that newer IDs sort first. The suffix `g` sorts an ID after IDs that start with it. */
const newestFirst = (id: string): string => hex(encoder.encode(id).map((byte) => 255 - byte)) + "g";

export const blobKey = async (ns: string, channel: string, version: string | number): Promise<string> =>
  `b/${await part(ns)}/${await part(channel)}/${await part(String(version))}/`;

export const checkpointsKey = async (ns: string | undefined): Promise<string> =>
  ns === undefined ? "c/" : `c/${await part(ns)}/`;

export const checkpointKey = async (ns: string, id: string): Promise<string> =>
  (await checkpointsKey(ns)) + newestFirst(id);

export const writesKey = async (ns: string, checkpoint: string): Promise<string> =>
  `w/${await part(ns)}/${await part(checkpoint)}/`;

export const taskKey = async (ns: string, checkpoint: string, task: string): Promise<string> =>
  (await writesKey(ns, checkpoint)) + (await part(task));

export const valueKey = async (ns: string, checkpoint: string, task: string, id: string): Promise<string> =>
  `v/${await part(ns)}/${await part(checkpoint)}/${await part(task)}/${id}/`;
