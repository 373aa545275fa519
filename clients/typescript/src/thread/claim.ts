import { ForbiddenError, ThreadkeepError } from "../http/errors.js";
import type { Transport } from "../http/send.js";
import type { ThreadInfo } from "../types/receipt.js";
import { idempotencyKey } from "./idempotency-key.js";

export async function claim(transport: Transport, id: string, owner: string, ttlSeconds: number | undefined): Promise<void> {
  for (;;) {
    const { body } = await transport.json<ThreadInfo>({ method: "GET", path: (thread) => thread, query: { peek: true } });
    if (body.exists) {
      if (body.owner === owner) return;
      throw new ForbiddenError("not_the_owner", "not_the_owner: This thread has another owner.", { status: 403 });
    }
    try {
      await transport.json({
        method: "POST",
        path: "/v1/threads",
        headers: { "idempotency-key": idempotencyKey() },
        body: JSON.stringify({ id, owner, ttl_seconds: ttlSeconds }),
      });
      return;
    } catch (error) {
      // another request has created the thread
      if (!(error instanceof ThreadkeepError && error.code === "thread_exists")) throw error;
    }
  }
}
