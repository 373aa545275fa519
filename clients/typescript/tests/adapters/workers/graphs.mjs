import { Annotation, Command, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { ThreadkeepSaver } from "threadkeep/langgraph";
import { options } from "../support/servers.mjs";

const list = () => Annotation({ reducer: (a, b) => a.concat(b), default: () => [] });

/** Builds a graph that asks for a number, starts that number of tasks, and collects their results. */
export function graphOf(number, prefix, checkpointer = new ThreadkeepSaver(options(number, { prefix }))) {
  const State = Annotation.Root({ log: list(), parts: list(), bytes: Annotation() });
  return new StateGraph(State)
    .addNode("first", () => ({ log: ["first"], bytes: new Uint8Array([0, 255, 128]) }))
    .addNode("ask", () => ({ log: [`asked: ${interrupt("How many?")}`] }))
    .addNode("part", ({ index, large }) => ({ parts: [large ? "x".repeat(large) + index : index] }))
    .addNode("last", ({ parts }) => ({ log: [`parts: ${parts.length}`] }))
    .addEdge(START, "first")
    .addEdge("first", "ask")
    .addConditionalEdges("ask", ({ log }) => {
      const { count, large } = JSON.parse(log.at(-1).slice("asked: ".length));
      return Array.from({ length: count }, (_, index) => new Send("part", { index, large }));
    })
    .addEdge("part", "last")
    .compile({ checkpointer });
}

export const configOf = (thread_id) => ({ configurable: { thread_id } });

export async function start(number, { thread, prefix }) {
  const state = await graphOf(number, prefix).invoke({ log: ["begin"] }, configOf(thread));
  return state.__interrupt__.map(({ value }) => value);
}

export async function resume(number, { thread, prefix, answer }) {
  const graph = graphOf(number, prefix);
  return graph.invoke(new Command({ resume: JSON.stringify(answer) }), configOf(thread));
}

/** Stores the writes of several tasks to one checkpoint. Both processes share one of the tasks. */
export async function putWrites(number, { config, prefix, count }) {
  const saver = new ThreadkeepSaver(options(number, { prefix }));
  const tasks = Array.from({ length: count }, (_, index) => `task-${number}-${index}`);
  await Promise.all([
    ...tasks.map((task) => saver.putWrites(config, [["channel", task], ["other", task]], task)),
    saver.putWrites(config, [["channel", number]], "shared"),
    saver.putWrites(config, [["__error__", `error ${number}`]], "shared"),
  ]);
}
