// Builds dist from src. npm runs this script to pack or link the folder. The script installs the compiler itself.

import { execFileSync, execSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";

process.chdir(import.meta.dirname);
const compiler = "node_modules/typescript/bin/tsc";
if (!existsSync(compiler)) {
  // the flags override options of the calling npm command, such as --omit=dev; only `npm pack` may write to stdout
  execSync("npm ci --include=dev --no-global --ignore-scripts --no-audit --no-fund --loglevel=error", {
    stdio: ["ignore", 2, 2],
  });
}
rmSync("dist", { recursive: true, force: true });
// does not check types, because only the tests install the frameworks; `isolatedDeclarations` makes this possible
execFileSync(process.execPath, [compiler, "--project", ".", "--noCheck"], { stdio: ["ignore", 2, 2] });
