import { options } from "../support/servers.mjs";

export async function append(number, { adapter, name, count }) {
  const { open } = await import(`../support/adapters/${adapter}.mjs`);
  const { append } = open(options(number), name);
  for (let at = 0; at < count; at += 4) {
    await Promise.all(Array.from({ length: Math.min(4, count - at) }, (_, index) => append(`${number}-${at + index}`)));
  }
}
