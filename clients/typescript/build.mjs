// Builds dist from src when npm packs or links the folder. Installs the compiler first if it is missing.

import { execFileSync, execSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";

process.chdir(import.meta.dirname);
const compiler = "node_modules/typescript/bin/tsc";
if (!existsSync(compiler)) {
  // overrides options of the calling npm command, such as --omit=dev; writes to stderr, because `npm pack` uses stdout
  execSync("npm ci --include=dev --no-global --ignore-scripts --no-audit --no-fund --loglevel=error", {
    stdio: ["ignore", 2, 2],
  });
}
rmSync("dist", { recursive: true, force: true });
// writes declarations without type checks, as `isolatedDeclarations` allows: only the tests install the frameworks
execFileSync(process.execPath, [compiler, "--project", ".", "--noCheck"], { stdio: ["ignore", 2, 2] });
