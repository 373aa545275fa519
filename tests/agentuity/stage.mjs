// Starts threadkeep, two processes of the app, and proxies from the app to threadkeep and from threadkeep to Redis.

import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";

import { Link } from "./link.mjs";
import { Wire } from "./wire.mjs";

const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

// Starts a program and waits until its output matches `line`. Returns the process and the first group of the match.
function start(log, line, env, program, ...args) {
  const child = spawn(program, args, { env, cwd: log.cwd, stdio: ["ignore", "pipe", "pipe"] });
  const file = createWriteStream(log.file, { flags: "a" });
  children.add(child);
  child.on("close", () => children.delete(child));
  child.exited = new Promise((resolve) => child.on("close", (code) => resolve(code)));
  return new Promise((resolve, reject) => {
    let text = "";
    const onOutput = (chunk) => {
      file.write(chunk);
      const match = line.exec((text = text.slice(-4096) + chunk));
      if (match) resolve([child, match[1]]);
    };
    child.stdout.on("data", onOutput);
    child.stderr.on("data", onOutput);
    const fail = (reason) => reject(new Error(`${program} ${args.join(" ")} ${reason}: ${text}`));
    child.on("error", fail);
    child.exited.then((code) => fail(`ended with ${code}`));
    setTimeout(fail, 120_000, "does not listen").unref();
  });
}

export class Stage {
  wire = new Wire();
  apps = [];
  #settings;
  #replicas = [];

  // The settings are program, redis (a socket path), bun, directory (with app.ts and the runtime), entry, key, prefix
  // and logs.
  static async open(settings) {
    const stage = new Stage();
    stage.#settings = settings;
    stage.redis = await Link.to({ path: settings.redis });
    await stage.startReplica();
    stage.proxy = await Link.to(stage.#target, stage.wire.tap);
    const telemetry = { AGENTUITY_CLOUD_ORG_ID: "org_1", AGENTUITY_CLOUD_PROJECT_ID: "proj_1" };
    // app "a" reports each request to /session, as a deployed app does
    stage.apps = await Promise.all([stage.#startApp("a", telemetry), stage.#startApp("b", {})]);
    return stage;
  }

  // URL of the newest replica, without a proxy.
  get url() {
    return `http://${this.address}`;
  }

  get key() {
    return this.#settings.key;
  }

  get #target() {
    const [host, port] = this.address.split(":");
    return { host, port: Number(port) };
  }

  async startReplica() {
    const { program, key, prefix, logs } = this.#settings;
    const env = {
      THREADKEEP_LISTEN: "127.0.0.1:0",
      THREADKEEP_WORKERS: "2",
      THREADKEEP_REDIS_URL: `redis://127.0.0.1:${this.redis.port}`,
      THREADKEEP_KEY_PREFIX: prefix,
      THREADKEEP_SIGNING_KEYS: `agentuity:${key}`,
      THREADKEEP_API_KEYS: `agentuity:${key}`,
    };
    const log = { file: `${logs}/${prefix}-replica${this.#replicas.length + 1}.log` };
    const listening = /"listening".*"address":"([^"]*)"/;
    const [replica, address] = await start(log, listening, env, program);
    this.#replicas.push(replica);
    this.address = address;
    this.proxy?.move(this.#target);
    return replica;
  }

  // Starts a new replica behind the same proxy, and stops the old replica. Returns the exit code of the old replica.
  async replaceReplica() {
    const before = this.#replicas.at(-1);
    await this.startReplica();
    before.kill("SIGTERM");
    return before.exited;
  }

  async #startApp(name, extraEnv) {
    const { bun, directory, entry, key, prefix, logs } = this.#settings;
    const proxyUrl = `http://127.0.0.1:${this.proxy.port}`;
    const env = {
      AGENTUITY_SDK_KEY: key,
      AGENTUITY_REGION: "local",
      AGENTUITY_TRANSPORT_URL: proxyUrl,
      AGENTUITY_CATALYST_URL: proxyUrl,
      AGENTUITY_KEYVALUE_URL: proxyUrl,
      // nothing listens on this port
      AGENTUITY_STREAM_URL: "http://127.0.0.1:9",
      AGENTUITY_OTLP_URL: "http://127.0.0.1:9",
      PORT: "0",
      HOME: logs,
      ...extraEnv,
    };
    const log = { file: `${logs}/${prefix}-app-${name}.log`, cwd: directory };
    const [child, port] = await start(
      log, /listening on (\d+)/, env, bun, "--no-install", entry,
    );
    return { name, child, url: `http://127.0.0.1:${port}` };
  }

  async close() {
    for (const child of [...this.apps.map((app) => app.child), ...this.#replicas]) child.kill();
    await Promise.all(this.#replicas.map((replica) => replica.exited));
    for (const link of [this.proxy, this.redis]) link?.close();
  }
}
