// Builds dist from src. npm runs this to pack or link the folder, for which it installs no compiler, so this does.

import { execFileSync, execSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";

process.chdir(import.meta.dirname);
const compiler = "node_modules/typescript/bin/tsc";
if (!existsSync(compiler)) {
  // without the options of the command that runs this, such as --omit=dev; output would end up in that of `npm pack`
  execSync("npm ci --include=dev --no-global --ignore-scripts --no-audit --no-fund --loglevel=error", {
    stdio: ["ignore", 2, 2],
  });
}
rmSync("dist", { recursive: true, force: true });
// unchecked, because only tests have the frameworks of the adapters; `isolatedDeclarations` makes declarations independent
execFileSync(process.execPath, [compiler, "--project", ".", "--noCheck"], { stdio: ["ignore", 2, 2] });
