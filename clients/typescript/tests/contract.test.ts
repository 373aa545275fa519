import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
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

test("ErrorCode names all codes of the server, and no others", () => {
  const rust = readFileSync(join(repository, "crates/web/src/error/table.rs"), "utf8");
  const server = [...rust.matchAll(/(?:row|Problem::new)\(\s*(?:StatusCode::\w+,\s*)?"([a-z_]+)"/g)].map(([, code]) => code!);
  const source = readFileSync(join(process.env["PACKAGE"]!, "src/http/error-code.ts"), "utf8");
  const union = source.slice(source.indexOf("type ServerErrorCode"));
  const client = [...union.matchAll(/"([a-z_]+)"/g)].map(([, code]) => code!);
  assert.deepEqual(client, [...new Set(server)].sort());
});
