// Builds dist from src. npm runs this to pack or link the folder without installing a compiler, so this script installs one.

import { execFileSync, execSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";

process.chdir(import.meta.dirname);
const compiler = "node_modules/typescript/bin/tsc";
if (!existsSync(compiler)) {
  // ignores options of the calling command, such as --omit=dev; stdout would end up in the output of `npm pack`
  execSync("npm ci --include=dev --no-global --ignore-scripts --no-audit --no-fund --loglevel=error", {
    stdio: ["ignore", 2, 2],
  });
}
rmSync("dist", { recursive: true, force: true });
// unchecked, because only tests install the adapters' frameworks; `isolatedDeclarations` makes declarations independent
execFileSync(process.execPath, [compiler, "--project", ".", "--noCheck"], { stdio: ["ignore", 2, 2] });
