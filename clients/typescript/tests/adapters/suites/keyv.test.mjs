// Runs Keyv's published test suites for storage adapters, unmodified.

import { randomUUID } from "node:crypto";
import keyvTestSuite, { keyvIteratorTests } from "@keyv/test-suite";
import Keyv from "keyv";
import { KeyvThreadkeep } from "threadkeep/keyv";
import * as test from "vitest";
import { options } from "../support/servers.mjs";

const store = `keyv-${randomUUID()}`;

keyvTestSuite(test, Keyv, () => new KeyvThreadkeep(options(0, { store })));
keyvIteratorTests(test, Keyv, () => new KeyvThreadkeep(options(0, { store })));
