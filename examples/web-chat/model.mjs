// The back end that answers questions. Only the back end writes `messages` and `draft`.

import { setTimeout as pause } from "node:timers/promises";

/** Simulates a model. Replace this function with your model. */
async function* reply(messages) {
  const { text } = messages.at(-1);
  const words = `You wrote “${text}”. A real model would know more about it. I only know that every tab sees these words as I say them.`;
  for (const word of words.split(/(?<= )/)) {
    yield word;
    await pause(60);
  }
}

/** Answers new questions in all conversations. */
export async function answerQuestions(client) {
  for await (const { threadId, keys = [] } of client.events({ types: ["thread.created", "thread.updated"] })) {
    if (keys.includes("questions")) answer(client.thread(threadId)).catch(report);
  }
}

async function answer(conversation) {
  // answers one question at a time, even if several copies of this program are running
  const turn = await conversation.turn({ waitSeconds: 30 });
  try {
    while (await takeQuestions(turn.thread)) {
      let draft = "";
      for await (const word of reply(await turn.thread.get("messages"))) {
        await turn.thread.set("draft", (draft += word));
      }
      await turn.thread.merge([
        { op: "push", key: "messages", value: { role: "assistant", text: draft }, maxRecords: 200 },
        { op: "delete", key: "draft" },
      ]);
    }
  } finally {
    await turn.release();
  }
}

/** Moves the questions to `messages` atomically. Returns nothing if there are no questions. */
function takeQuestions(conversation) {
  return conversation.update("questions", ({ questions = [] }) => {
    if (!questions.length) return;
    const messages = questions.map((text) => ({ role: "user", text }));
    return [
      ...messages.map((value) => ({ op: "push", key: "messages", value, maxRecords: 200 })),
      { op: "delete", key: "questions" },
    ];
  });
}

function report(error) {
  // these two codes are not faults: the user deleted the conversation, or another program is answering this question
  if (error.code !== "thread_destroyed" && error.code !== "turn_taken") console.error(error);
}
