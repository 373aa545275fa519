import { threadIdFor } from "../thread-id.js";

const THREAD_ID = /^thrd_[a-zA-Z0-9]{27,59}$/;

/** The thread of an application's ID. An ID that is a thread's already stays as it is. */
export async function threadIdOf(name: string, prefix: string): Promise<string> {
  return THREAD_ID.test(name) ? name : threadIdFor(name, prefix);
}

/** 40 hex digits for a name that is too long, or has characters that are not allowed. */
export async function digestOf(name: string, space?: string): Promise<string> {
  return (await threadIdFor(name, space)).slice(5, 45);
}
