import { useState } from "preact/hooks";
import { asProblem } from "../../api/problem.js";
import { pushValue } from "../../api/state.js";
import { getHistory } from "../../api/threads.js";
import { Chat } from "../../chat/chat.js";
import { roleOf } from "../../chat/messages.js";
import { excerpt } from "../../json/visible.js";
import { useLoad } from "../../load.js";
import { announce } from "../../ui/announce.js";
import { Empty } from "../../ui/notices.js";
import type { ThreadView } from "./view.js";

/** Items of a history that a conversation shows. */
const ITEMS = 500;
const HISTORY = "\u0000history";

/** The conversations of a thread: keys that hold messages, and the history if it does. */
export function ChatTab({ view, chats, canWrite }: { view: ThreadView; chats: Map<string, string[]>; canWrite: boolean }) {
  const [chosen, setChosen] = useState<string>();
  const history = useLoad(
    async (signal) => {
      const { items } = await getHistory(`/v1/threads/${view.id}/history`, undefined, ITEMS, undefined, signal);
      const told = items.filter(({ value }) => roleOf(value));
      return told.length > 0 && told.length === items.length ? told.map(({ value }) => value) : undefined;
    },
    [view, view.historyChanges.value],
  );
  const names = [...chats.keys()];
  if (history.value) names.push(HISTORY);
  const name = chosen !== undefined && names.includes(chosen) ? chosen : (names.find((name) => name === "messages") ?? names[0]);
  const messages = name === undefined ? undefined : name === HISTORY ? history.value : chats.get(name);
  if (name === undefined || !messages)
    return (
      <Empty title="No key of this thread holds messages.">
        <p>
          A key does if it is an array of objects with a <code>role</code>, such as <code>{'{"role": "user", "content": "Hello"}'}</code>.
        </p>
        {canWrite && <Send view={view} name="messages" />}
      </Empty>
    );
  return (
    <>
      {names.length > 1 && (
        <label class="field">
          <span>Conversation</span>
          <select value={name} onChange={(event) => setChosen(event.currentTarget.value)}>
            {names.map((name) => (
              <option key={name} value={name}>
                {name === HISTORY ? "the history" : excerpt(name, 80)}
              </option>
            ))}
          </select>
        </label>
      )}
      <Chat key={name} messages={messages} name={name === HISTORY ? "History" : name} />
      {canWrite && name !== HISTORY && <Send view={view} name={name} />}
    </>
  );
}

/** Pushes a message. */
function Send({ view, name }: { view: ThreadView; name: string }) {
  const [role, setRole] = useState("user");
  const [content, setContent] = useState("");
  const [isBusy, setBusy] = useState(false);
  const send = async (event: Event) => {
    event.preventDefault();
    if (!content || isBusy) return;
    setBusy(true);
    try {
      await pushValue(view.id, name, JSON.stringify({ role, content }));
      setContent("");
    } catch (error) {
      announce(asProblem(error).message);
    }
    setBusy(false);
  };
  return (
    <form class="send" onSubmit={send}>
      <select aria-label="Role" value={role} onChange={(event) => setRole(event.currentTarget.value)}>
        {["user", "assistant", "system", "tool"].map((role) => (
          <option key={role}>{role}</option>
        ))}
      </select>
      <input aria-label="Message" placeholder={`Push a message to ${excerpt(name, 40)}`} value={content} onInput={(event) => setContent(event.currentTarget.value)} />
      <button type="submit" class="primary" disabled={isBusy || !content}>
        Push
      </button>
    </form>
  );
}
