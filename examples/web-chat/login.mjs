// Issues tokens that contain a user's name. In production, your login service issues the tokens, and threadkeep needs
// only the key.

import { createHmac, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const key = randomBytes(32).toString("hex");
const folder = mkdtempSync(join(tmpdir(), "web-chat-"));
process.on("exit", () => rmSync(folder, { recursive: true }));

export const keyFile = join(folder, "key");
writeFileSync(keyFile, key, { mode: 0o600 });

const encode = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");

/** Issues a token that is valid for a day. */
export function tokenFor(name) {
  const exp = Math.floor(Date.now() / 1000) + 86_400;
  const content = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub: name, exp })}`;
  return `${content}.${createHmac("sha256", key).update(content).digest("base64url")}`;
}
