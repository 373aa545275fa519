import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { servers } from "./servers.mjs";

const entry = fileURLToPath(new URL("process.mjs", import.meta.url));

/** Calls a function from workers/ in two processes at once. Each process uses its own server. Returns both results. */
export async function inTwoProcesses(module, name, argument) {
  const children = servers.map((_, number) => fork(entry, [module, name], { serialization: "advanced" }));
  try {
    await Promise.all(children.map((child) => message(child)));
    const results = children.map((child) => message(child));
    children.forEach((child, number) => child.send({ number, argument }));
    return await Promise.all(results);
  } finally {
    for (const child of children) child.kill();
  }
}

/** Calls a function from workers/ in a process that runs until `stop` is called. Returns the result and `stop`. */
export async function startProcess(module, name, number, argument) {
  const child = fork(entry, [module, name], { serialization: "advanced" });
  await message(child);
  const result = message(child);
  child.send({ number, argument });
  return { result: await result, stop: () => child.kill("SIGKILL") };
}

async function message(child) {
  const [reply, code] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([status]) => [undefined, status ?? "a signal"]),
  ]);
  if (!reply) throw new Error(`A process ended with ${code}.`);
  if (reply.error) throw new Error(reply.error);
  return reply.value;
}
