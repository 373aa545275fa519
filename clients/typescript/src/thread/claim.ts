import { ForbiddenError, ThreadkeepError } from "../http/errors.js";
import type { Transport } from "../http/send.js";
import { write } from "../http/write.js";
import type { ThreadInfo } from "../types/receipt.js";

export async function claim(transport: Transport, id: string, owner: string, ttlSeconds: number | undefined): Promise<void> {
  for (;;) {
    const { body } = await transport.json<ThreadInfo>({ method: "GET", path: (thread) => thread, query: { peek: true } });
    if (body.exists) {
      if (body.owner === owner) return;
      throw new ForbiddenError("not_the_owner", "not_the_owner: This thread has another owner.", { status: 403 });
    }
    try {
      const body = JSON.stringify({ id, owner, ttl_seconds: ttlSeconds });
      await write(transport, "POST", "/v1/threads", {}, { body });
      return;
    } catch (error) {
      // another request has created the thread
      if (!(error instanceof ThreadkeepError && error.code === "thread_exists")) throw error;
    }
  }
}
