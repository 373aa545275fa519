// Starts threadkeep, the model, and a server that serves the page and has its own login.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { createClient } from "threadkeep";
import { keyFile, tokenFor } from "./login.mjs";
import { answerQuestions } from "./model.mjs";

const file = (name) => readFileSync(new URL(`page/${name}`, import.meta.url));
const apiKey = randomBytes(24).toString("hex");

// Serves the page, which consists of three files, and a login that accepts any name.
const script = await build({
  entryPoints: [fileURLToPath(new URL("page/main.tsx", import.meta.url))],
  bundle: true,
  write: false,
  format: "esm",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
});
const files = {
  "/": ["text/html; charset=utf-8", file("index.html")],
  "/style.css": ["text/css", file("style.css")],
  "/main.js": ["text/javascript", script.outputFiles[0].contents],
};
const pages = createServer(async (request, response) => {
  if (request.method === "POST" && request.url === "/login") {
    const name = (await request.setEncoding("utf8").toArray()).join("");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ token: tokenFor(name), threadkeep: `http://${threadkeep}` }));
    return;
  }
  const [type, content] = files[request.url] ?? ["text/plain", "not found"];
  response.writeHead(request.url in files ? 200 : 404, { "content-type": type }).end(content);
});
pages.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
await once(pages, "listening");
const origin = `http://127.0.0.1:${pages.address().port}`;

// Starts threadkeep for requests from the page. Set variables such as THREADKEEP_REDIS_URL to change other settings.
const { THREADKEEP_BIN = "threadkeep", ...environment } = process.env;
const server = spawn(THREADKEEP_BIN, {
  env: {
    ...environment,
    THREADKEEP_API_KEYS: `model:${apiKey}`,
    THREADKEEP_CORS_ORIGINS: origin,
    THREADKEEP_OWNER: "jwt",
    THREADKEEP_OWNER_REQUIRED: "true",
    THREADKEEP_IDENTITY_JWT_KEY_FILE: keyFile,
    THREADKEEP_RESERVED_KEYS: "messages,draft", // pages can read these keys, but cannot write them
    THREADKEEP_THREAD_TTL_SECONDS: String(30 * 86_400),
  },
  stdio: ["ignore", "ignore", "pipe"],
});
server.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => server.kill());

let threadkeep = "";
for await (const line of createInterface(server.stderr)) {
  console.error(line);
  threadkeep = /"listening","address":"(.*?)"/.exec(line)?.[1] ?? "";
  if (threadkeep) break;
}
// if threadkeep did not start, waits for the exit handler above; the last printed line shows the reason
if (!threadkeep) await new Promise(() => {});
server.stderr.pipe(process.stderr);
console.log(`Open ${origin} in two tabs. Ctrl-C ends everything.`);

await answerQuestions(createClient({ baseUrl: `http://${threadkeep}`, apiKey }));
