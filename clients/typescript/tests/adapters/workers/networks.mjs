import { createAgent, createNetwork, createState } from "@inngest/agent-kit";
import { createHistory } from "threadkeep/agentkit";
import { startModel } from "../support/model.mjs";
import { options } from "../support/servers.mjs";

export async function run(number, { threadId, count }) {
  const { model, stop } = await startModel((messages) => `answer to ${messages.at(-1).content}`);
  for (let index = 0; index < count; index++) {
    const agent = createAgent({
      name: "writer",
      system: "Answer.",
      lifecycle: {
        onFinish({ network, result }) {
          network.state.data[`value-${number}`] = index;
          network.state.kv.set(`kv-${number}-${index}`, index);
          return result;
        },
      },
    });
    const network = createNetwork({
      name: "test",
      agents: [agent],
      defaultModel: model,
      router: ({ callCount }) => (callCount ? undefined : agent),
      history: createHistory(options(number)),
    });
    await network.run(`message ${number}-${index}`, { state: createState({}, { threadId }) });
  }
  stop();
}
