// Compiles and runs the framework programs in README.md and docs/adapters.md. Does not run AgentKit, which needs a
// model. Next.js is too large to install, so the test calls the route and the page directly.

import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Server } from "node:net";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { simulateReadableStream } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { renderToString } from "react-dom/server";
import { beforeAll, expect, it, vi } from "vitest";
import { apiKey, servers, unique } from "./support/servers.mjs";

const folder = new URL("samples/", import.meta.url);
const inPackage = (name) => readFileSync(new URL(`../node_modules/threadkeep/${name}`, import.meta.url), "utf8");

/** Returns the programs of each section of a page, by file name. A program's first line may name its file. */
function programsOf(page) {
  return page.split(/^## /m).slice(1).map((section) => {
    const title = section.slice(0, section.indexOf("\n"));
    const blocks = [...section.matchAll(/^```tsx?\n(?:\/\/ (\S+\.tsx?)\n)?(.*?)^```/gms)];
    return { title, files: blocks.map(([, file = `${title.toLowerCase().replaceAll(" ", "-")}.ts`, code]) => ({ file, code })) };
  });
}

const adapters = programsOf(inPackage("docs/adapters.md")).filter(({ files }) => files.length);
const inReadme = (title) => programsOf(inPackage("README.md")).find((program) => program.title === title);
const [next, expressApp, agent] = ["A Next.js chat with the AI SDK", "An Express app", "A LangGraph agent"].map(inReadme);
const isStandalone = ({ title }) => title !== "AgentKit";

function compile(directory, options) {
  const compilerOptions = { strict: true, noEmit: true, target: "es2022", skipLibCheck: true, types: ["node"], ...options };
  writeFileSync(new URL("tsconfig.json", directory), JSON.stringify({ compilerOptions, exclude: ["next"] }));
}

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  const nextApp = new URL("next/", folder);
  for (const name of ["app/api/chat", "app/chat/[id]"]) mkdirSync(new URL(name, nextApp), { recursive: true });
  writeFileSync(new URL("package.json", folder), '{"type":"module"}');
  compile(folder, { module: "nodenext" });
  compile(nextApp, { module: "esnext", moduleResolution: "bundler", jsx: "react-jsx" });
  for (const { files } of [...adapters, expressApp, agent]) for (const { file, code } of files) writeFileSync(new URL(file, folder), code);
  for (const { file, code } of next.files) writeFileSync(new URL(file, nextApp), code);
  Object.assign(process.env, { THREADKEEP_URL: servers[0], THREADKEEP_API_KEY: apiKey });
});

it("finds every program", () => {
  expect(adapters).toHaveLength(6);
  expect(next.files).toHaveLength(3);
});

it.each(["", "next"])("samples/%s compiles", async (directory) => {
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  const run = promisify(execFile)(process.execPath, [tsc, "-p", fileURLToPath(new URL(directory, folder))]);
  const { stdout } = await run.catch((error) => error);
  expect(stdout).toBe("");
}, 600_000);

it.each([...adapters.filter(isStandalone), agent])("runs the example: $title", async ({ files }) => {
  await import(new URL(files[0].file, folder));
});

it("runs the Next.js chat", async () => {
  const part = (type, members) => ({ type, id: "1", ...members });
  const chunks = [
    part("text-start"),
    ...["Try ", "Bern."].map((delta) => part("text-delta", { delta })),
    part("text-end"),
    { type: "finish", finishReason: { unified: "stop" }, usage: { inputTokens: {}, outputTokens: {} } },
  ];
  const model = new MockLanguageModelV4({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
  globalThis.AI_SDK_DEFAULT_PROVIDER = { languageModel: () => model };
  const id = unique("chat");
  const message = { id: "m1", role: "user", parts: [{ type: "text", text: "Where to?" }] };

  const { POST } = await import(new URL("next/app/api/chat/route.ts", folder));
  const body = JSON.stringify({ id, message });
  const response = await POST(new Request("http://localhost/api/chat", { method: "POST", body }));
  expect(await response.text()).toContain("Bern.");

  const { default: Page } = await import(new URL("next/app/chat/[id]/page.tsx", folder));
  const html = renderToString(await Page({ params: Promise.resolve({ id }) }));
  expect(html).toContain("<p>Where to?</p><p>Try Bern.</p>");
});

it("runs the Express app", async () => {
  process.env.PORT = "0";
  const listen = vi.spyOn(Server.prototype, "listen");
  await import(new URL(expressApp.files[0].file, folder));
  const server = listen.mock.results[0].value;
  listen.mockRestore();
  if (!server.listening) await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;

  let visits;
  let times;
  do {
    const first = await fetch(url);
    const cookie = first.headers.getSetCookie()[0].split(";")[0];
    // express-session sends the last byte after it saves the session
    await first.text();
    visits = async () => (await fetch(url, { headers: { cookie } })).json();
    const both = await Promise.all([visits(), setTimeout(2).then(visits)]);
    times = new Set(both.map((list) => list.at(-1)));
    // retries if both visits were in the same millisecond, because their changes are then equal
  } while (times.size < 2);
  expect(await visits()).toHaveLength(4);
});
