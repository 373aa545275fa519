import { AgentResult, type Message } from "@inngest/agent-kit";
import { digestOf } from "../names.js";

type Exported = ReturnType<AgentResult["export"]>;

export type UserValue = {
  kind: "user";
  id: string;
  content: string;
  timestamp: string;
};

export interface AgentValue {
  kind: "agent";
  result: Omit<Exported, "createdAt"> & { createdAt: string; id: string };
}

export type StoredValue = UserValue | AgentValue;

export async function userItem(message: { id: string; content: string; timestamp: Date | string }): Promise<{ id: string; value: UserValue }> {
  const { id, content } = message;
  const timestamp = new Date(message.timestamp).toISOString();
  return { id: await itemId(id), value: { kind: "user", id, content, timestamp } };
}

export async function agentItem(result: AgentResult): Promise<{ id: string; value: AgentValue }> {
  const id = (result.id ??= crypto.randomUUID());
  const exported = JSON.parse(JSON.stringify(result.export())) as Omit<AgentValue["result"], "id">;
  return { id: await itemId(id), value: { kind: "agent", result: { ...exported, id } } };
}

/** Converts stored values to results. A user message becomes a result of an agent named `user`. */
export function resultsOf(values: readonly StoredValue[]): AgentResult[] {
  return values.flatMap((value) => {
    if (value?.kind === "user") {
      const message: Message = { type: "text", role: "user", content: value.content, stop_reason: "stop" };
      return [new AgentResult("user", [message], [], new Date(value.timestamp), undefined, undefined, undefined, value.id)];
    }
    if (value?.kind === "agent") {
      const { agentName, output, toolCalls, createdAt, id } = value.result;
      return [new AgentResult(agentName, output, toolCalls, new Date(createdAt), undefined, undefined, undefined, id)];
    }
    return [];
  });
}

/** Returns whether two values are equal if IDs, times and checksums are ignored. */
export function isSame(a: StoredValue, b: StoredValue): boolean {
  return contentOf(a) === contentOf(b);
}

function contentOf(value: StoredValue): string {
  if (value?.kind === "user") return JSON.stringify(["user", value.content]);
  if (value?.kind === "agent") {
    const { agentName, output, toolCalls } = value.result;
    return JSON.stringify(["agent", agentName, output, toolCalls]);
  }
  return JSON.stringify(value);
}

async function itemId(id: string): Promise<string> {
  return /^[\x21-\x7e]{1,128}$/.test(id) ? id : "~" + (await digestOf(id));
}
