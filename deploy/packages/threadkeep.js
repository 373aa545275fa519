#!/usr/bin/env node
// Runs the program from this platform's package with the same arguments, environment and standard streams.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const { name, optionalDependencies } = require("../package.json");

const platform = `${process.platform}-${process.arch}`;
const wanted = `${name}-${platform}`;
// A terminal sends its signals to both processes. The server ignores every signal after the first.
const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

function fail(message) {
  process.stderr.write(`${name}: ${message}\n`);
  process.exit(1);
}

function find() {
  if (!(wanted in optionalDependencies)) {
    const available = Object.keys(optionalDependencies).map((each) => each.slice(name.length + 1));
    fail(`there is no program for ${platform}. Available: ${available.join(", ")}`);
  }
  try {
    return require.resolve(`${wanted}/bin/threadkeep`);
  } catch {
    fail(
      `the package ${wanted} is missing. Install ${name} again on this machine, with optional dependencies` +
        " (without --omit=optional)." +
        (process.platform === "linux" ? " It requires glibc; there is no program for musl, as on Alpine." : ""),
    );
  }
}

const program = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of FORWARDED) {
  process.on(signal, () => program.kill(signal));
}
program.on("error", (error) => fail(`cannot start ${error.path}: ${error.code}`));
program.on("exit", (code, signal) => {
  // like shells, reports 128 plus the signal's number if a signal ended the program
  process.exitCode = code ?? 128 + os.constants.signals[signal];
});
