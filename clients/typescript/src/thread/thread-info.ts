import { camel } from "../http/camel.js";
import type { ThreadInfo } from "../types/receipt.js";

/** A thread object of the server. */
export const threadInfo = (body: object): ThreadInfo => camel(body);
