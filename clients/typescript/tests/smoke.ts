import { createClient, threadIdFor, ThreadkeepError } from "threadkeep";

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}

export async function smoke(baseUrl: string): Promise<string> {
  const client = createClient({ baseUrl, attempts: 2 });
  const thread = client.current();
  await Promise.all(Array.from({ length: 10 }, (_, index) => thread.push("list", index)));
  const list: number[] = (await thread.get("list")) ?? [];
  check(list.sort().join() === "0,1,2,3,4,5,6,7,8,9", `ten writes: ${list}`);
  const { value } = await thread.increment("big", 9_007_199_254_740_993n);
  check(value === 9_007_199_254_740_993n, "exact integers");
  let seen = "";
  for await (const event of thread.events({ onOpen: () => void thread.set("title", "é") })) {
    seen = event.type === "thread.updated" ? event.keys.join() : event.type;
    break;
  }
  check(seen === "title", `events: ${seen}`);
  const code = await thread.increment("title").catch((error) => (error instanceof ThreadkeepError ? error.code : error));
  check(code === "not_an_integer", `errors: ${code}`);
  const reason = await thread.read({ signal: AbortSignal.abort("enough") }).catch((error) => error);
  check(reason === "enough", `signals: ${reason}`);
  const id = await threadIdFor("user 7", "app");
  check(id === "thrd_6b2f1ee017fc72715b6873e2f76f60d9e0a6054589c96ff1", `digests: ${id}`);
  await thread.destroy();
  return "the client works";
}
