import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createClient } from "threadkeep";
import { createAdmin } from "threadkeep/admin";
import { WITHOUT_METHOD } from "./api-calls.js";
import { markdown, methodsByCall, operations } from "./api-table.js";

const repository = process.env["REPOSITORY"]!;
const openapi = join(repository, "openapi.json");
const page = join(process.env["PACKAGE"]!, "docs/calls.md");

test("each call of openapi.json has a method, and the table of the documentation is current", async () => {
  const table = await methodsByCall(openapi);
  const missing = operations(openapi).filter((operation) => !table.has(operation) && !WITHOUT_METHOD.includes(operation));
  assert.deepEqual(missing, []);
  const text = markdown(table);
  if (process.env["WRITE_DOCS"]) writeFileSync(page, text);
  assert.equal(readFileSync(page, "utf8"), text);
});

/** Methods in the TypeScript column of docs/client-verbs.md. */
const verbs = [...readFileSync(join(repository, "docs/client-verbs.md"), "utf8").matchAll(/^\|.*\| `([^`]+)` \|$/gm)].map(([, verb]) => verb!);

test("the table of verbs has each method, and each of its methods exists", () => {
  const client = createClient({ baseUrl: "http://fake", apiKey: "key" });
  const admin = createAdmin({ client });
  const parts = {
    client,
    admin,
    thread: client.thread("thrd_x"),
    "client.scope(name)": client.scope("session:a"),
    "client.kv(namespace)": client.kv("n"),
    "admin.kv(namespace)": admin.kv("n"),
    "admin.tasks(scope)": admin.tasks("session:a"),
  };
  const methods = Object.entries(parts).flatMap(([name, part]) => methodsOf(name, part));
  const clientMethods = new Set(methodsOf("admin.kv(namespace)", client.kv("n")));
  assert.deepEqual(verbs.sort(), ["threadIdFor()", "turn.effect()", ...methods.filter((method) => !clientMethods.has(method))].sort());
});

function methodsOf(name: string, part: object): string[] {
  return Object.entries(part).flatMap(([key, value]) => {
    if (typeof value === "function") return [`${name}.${key}()`];
    return value && typeof value === "object" ? methodsOf(`${name}.${key}`, value) : [];
  });
}

test("ErrorCode names all codes of the server, and no others", () => {
  const rust = readFileSync(join(repository, "crates/web/src/error/table.rs"), "utf8");
  const server = [...rust.matchAll(/(?:row|Problem::new)\(\s*(?:StatusCode::\w+,\s*)?"([a-z_]+)"/g)].map(([, code]) => code!);
  const source = readFileSync(join(process.env["PACKAGE"]!, "src/http/error-code.ts"), "utf8");
  const union = source.slice(source.indexOf("type ServerErrorCode"));
  const client = [...union.matchAll(/"([a-z_]+)"/g)].map(([, code]) => code!);
  assert.deepEqual(client, [...new Set(server)].sort());
});
