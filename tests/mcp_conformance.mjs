// Runs the Model Context Protocol's conformance suite for each revision of the protocol. Fails if a relevant check
// fails. Run by mcp-conformance.sh. Usage: mcp_conformance.mjs SUITE URL API_KEY FOLDER

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir } from "node:fs/promises";
import http from "node:http";
import { join } from "node:path";

const [suite, server, apiKey, folder] = process.argv.slice(2);
const REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
// Scenarios that need tools, prompts and resources of the suite's own server, or capabilities that this server lacks.
// In these scenarios, only the check of the message format counts.
const FOREIGN =
  /^(tools-call|prompts|resources-(read|templates|subscribe|unsubscribe)|completion|logging|elicitation|input-required|json-schema|http-custom-header)/;
const MESSAGE_FORMAT = "wire-schema-valid";
// a check of prompts inside a relevant scenario
const PROMPTS = "sep-2549-prompts-list-caching-hints";

// Starts a proxy that adds an API key and a scope to each request, because the suite does not send credentials. A
// signed URL would not be enough, because some scenarios drop its query.
async function startProxy() {
  const credentials = ["authorization", `Bearer ${apiKey}`, "x-session-id", "conformance"];
  const proxy = http.createServer((request, response) => {
    const { method, url, rawHeaders } = request;
    const headers = [...rawHeaders, ...credentials];
    const forwarded = http.request(new URL(url, server), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
    });
    forwarded.on("error", () => response.destroy());
    request.pipe(forwarded);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return proxy;
}

// Runs the suite for a protocol revision. Ignores the exit code, which is 1 because the scenarios in `FOREIGN` fail.
function run(url, revision, output) {
  const scenarios = ["--suite", "all", "--spec-version", revision];
  const options = [suite, "server", "--url", url, ...scenarios, "--output-dir", output];
  return new Promise((resolve) => execFile(process.execPath, options, { timeout: 300_000 }, resolve));
}

async function checksOf(output) {
  const folders = await readdir(output);
  const read = async (name) => {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(name)[1];
    const checks = JSON.parse(await readFile(join(output, name, "checks.json"), "utf8"));
    return checks.map((check) => ({ ...check, scenario }));
  };
  return (await Promise.all(folders.map(read))).flat();
}

const isRelevant = ({ scenario, id }) =>
  id === MESSAGE_FORMAT || (!FOREIGN.test(scenario) && id !== PROMPTS);
const hasFailed = ({ status, details }) => status === "FAILURE" && !details?.untestable;

async function conform(url, revision) {
  const output = join(folder, revision);
  await run(url, revision, output);
  const checks = (await checksOf(output)).filter(isRelevant);
  const failed = checks.filter(hasFailed);
  const passed = checks.filter(({ status }) => status === "SUCCESS");
  for (const { scenario, id, errorMessage } of failed) {
    console.error(`${revision} ${scenario}: ${id}: ${errorMessage}`);
  }
  console.log(`${revision}: ${passed.length} checks passed, ${failed.length} failed`);
  return { passed: passed.length, failed: failed.length };
}

const proxy = await startProxy();
const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
const results = await Promise.all(REVISIONS.map((revision) => conform(url, revision)));
proxy.close();
proxy.closeAllConnections();
assert.ok(
  results.every(({ failed }) => failed === 0),
  "see the failed checks above",
);
assert.ok(results.at(-1).passed > 60, "the suite did not run");
