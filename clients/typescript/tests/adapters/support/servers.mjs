import { randomUUID } from "node:crypto";
import { createClient } from "threadkeep";

/** `memory` or `redis`. */
export const store = process.env.ADAPTERS_STORE;
/** URLs of two replicas. If there is only one server, its URL occurs twice. */
export const servers = process.env.ADAPTERS_SERVERS.split(",");
export const apiKey = process.env.ADAPTERS_API_KEY;
export const isLong = process.env.ADAPTERS_LONG === "1";

export const options = (replica = 0, extra = {}) => ({ baseUrl: servers[replica], apiKey, ...extra });

export const client = (replica = 0, extra = {}) => createClient(options(replica, extra));

/** Returns a unique name with special characters, which frameworks allow. */
export const unique = (name) => `${name}/ü ${randomUUID()}`;
