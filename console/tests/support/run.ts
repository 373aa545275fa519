import { chromium } from "playwright-core";
import { runTests } from "../../../clients/typescript/tests/support/run-tests.js";

await runTests(chromium);
