import { chromium } from "playwright-core";
import { runTests } from "./run-tests.js";

await runTests(chromium, ["--renderer-process-limit=8", "--disable-site-isolation-trials"]);
