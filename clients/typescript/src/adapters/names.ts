import { threadIdFor } from "../thread-id.js";

const THREAD_ID = /^thrd_[a-zA-Z0-9]{27,59}$/;

/** Returns the thread ID for an application's ID. If `name` is already a thread ID, returns it unchanged. */
export async function threadIdOf(name: string, prefix: string): Promise<string> {
  return THREAD_ID.test(name) ? name : threadIdFor(name, prefix);
}

/** Returns a hash of 40 hex digits, for names that are too long or contain forbidden characters. */
export async function digestOf(name: string, space?: string): Promise<string> {
  return (await threadIdFor(name, space)).slice(5, 45);
}
