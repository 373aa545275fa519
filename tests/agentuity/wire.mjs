// Records the calls on /thread/ws and the server's answers.

import { Messages } from "./messages.mjs";

export class Wire {
  // Each call is { connection, action, thread, data, answer }. `answer` is undefined until the answer arrives. If the
  // connection closes first, `answer` is { success: false, error: "closed" }.
  calls = [];
  // number of accepted connections
  authenticated = 0;
  #connections = 0;

  // Records one connection. Pass this function to `Link`.
  tap = () => {
    const connection = ++this.#connections;
    const open = new Map();
    const finish = (call, message) => {
      call.answer = message;
      open.delete(message.id);
    };
    const up = new Messages((message) => {
      if (!message.action) return;
      const { id, action, data } = message;
      const call = { connection, action, thread: data.thread_id, data, answer: undefined };
      open.set(id, call);
      this.calls.push(call);
    });
    const down = new Messages((message) => {
      if (open.has(message.id)) finish(open.get(message.id), message);
      if (message.id === undefined && message.success) this.authenticated++;
    });
    return {
      up: (chunk) => up.read(chunk),
      down: (chunk) => down.read(chunk),
      closed: () => {
        for (const [id, call] of open) finish(call, { id, success: false, error: "closed" });
      },
    };
  };

  // Returns the calls for a thread, oldest first.
  of(thread) {
    return this.calls.filter((call) => call.thread === thread);
  }
}
