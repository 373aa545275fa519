import { randomUUID } from "node:crypto";
import { createClient } from "threadkeep";

/** The store of the servers: memory or redis. */
export const store = process.env.ADAPTERS_STORE;
/** The addresses of two replicas, or twice that of the only server. */
export const servers = process.env.ADAPTERS_SERVERS.split(",");
export const apiKey = process.env.ADAPTERS_API_KEY;
/** Whether to run the long form. */
export const isLong = process.env.ADAPTERS_LONG === "1";

/** The options of a client of one of the servers. */
export const options = (replica = 0, more = {}) => ({ baseUrl: servers[replica], apiKey, ...more });

export const client = (replica = 0, more = {}) => createClient(options(replica, more));

/** A name that no other test uses. It has the characters that names of frameworks may have. */
export const unique = (name) => `${name}/ü ${randomUUID()}`;
