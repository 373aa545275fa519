import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

/** `memory` or `redis`. */
export const STORE = process.env["STORE"] ?? "memory";
export const API_KEY = "an-api-secret-of-the-tests-that-is-long-enough";

const program = process.env["THREADKEEP_BIN"]!;
const started = new Set<() => Promise<void>>();
after(async () => {
  for (const stop of [...started].reverse()) await stop();
});

/** Loopback address that only this process uses, so that no other process takes the port while a server restarts. */
const HOST = [127, 128 + (process.pid >> 16), (process.pid >> 8) & 255, process.pid & 255].join(".");

function stopper(child: ChildProcess): () => Promise<void> {
  const stop = async () => {
    started.delete(stop);
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  started.add(stop);
  return stop;
}

let redisUrl: Promise<string> | undefined;

async function startRedis(): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), "threadkeep-ts-"));
  const socket = join(dir, "redis.sock");
  const options = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir];
  const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "inherit"] });
  const stop = stopper(child);
  started.delete(stop);
  started.add(async () => {
    await stop();
    rmSync(dir, { recursive: true, force: true });
  });
  // not `for await`, because leaving the loop would close the output
  await new Promise<void>((resolve) => {
    child.stdout.on("data", (data) => /ready to accept/i.test(String(data)) && resolve());
  });
  return `unix://${socket}`;
}

let servers = 0;

export interface Server {
  readonly url: string;
  stop(): Promise<void>;
  /** Restarts the server at the same address. Only data in Redis survives. */
  restart(): Promise<void>;
}

export async function startServer(settings: { [name: string]: string } = {}): Promise<Server> {
  const prefix = `ts${process.pid}x${servers++}`;
  const env: { [name: string]: string } = {
    THREADKEEP_LISTEN: `${HOST}:0`,
    THREADKEEP_STORE_TIMEOUT_MS: "30000",
    THREADKEEP_WORKERS: "2",
    THREADKEEP_SIGNING_KEYS: "main:an-hmac-secret-of-the-tests-that-is-long-enough",
    THREADKEEP_API_KEYS: `ops:${API_KEY}`,
    ...settings,
  };
  if (STORE === "redis") {
    env["THREADKEEP_REDIS_URL"] = await (redisUrl ??= startRedis());
    env["THREADKEEP_KEY_PREFIX"] ??= prefix;
  }
  const run = async () => {
    const child = spawn(program, [], { env, stdio: ["ignore", "ignore", "pipe"] });
    const stop = stopper(child);
    let log = "";
    env["THREADKEEP_LISTEN"] = await new Promise<string>((resolve, reject) => {
      child.stderr.on("data", (data) => {
        log += data;
        const address = /"listening".*?"address":"(.*?)"/.exec(log)?.[1];
        if (address) resolve(address);
      });
      child.on("exit", () => reject(new Error(`the server did not start:\n${log}`)));
    });
    return stop;
  };
  let stop = await run();
  return {
    url: `http://${env["THREADKEEP_LISTEN"]}`,
    stop: () => stop(),
    async restart() {
      await stop();
      stop = await run();
    },
  };
}
