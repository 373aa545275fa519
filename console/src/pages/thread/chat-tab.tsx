import { useState } from "preact/hooks";
import { asProblem } from "../../api/problem.js";
import { pushValue } from "../../api/state.js";
import { Chat } from "../../chat/chat.js";
import { mainKey } from "../../chat/conversations.js";
import { excerpt } from "../../json/visible.js";
import { announce } from "../../ui/announce.js";
import { Empty } from "../../ui/notices.js";
import type { ThreadView } from "./view.js";

const HISTORY = "\u0000history";

/** Shows the keys that contain messages, and the history if it contains messages. */
export function ChatTab({
  view,
  chats,
  history,
  canWrite,
}: {
  view: ThreadView;
  chats: Map<string, string[]>;
  history: readonly string[] | undefined;
  canWrite: boolean;
}) {
  const [chosen, setChosen] = useState<string>();
  const names = [...chats.keys()];
  if (history) names.push(HISTORY);
  const name = chosen !== undefined && names.includes(chosen) ? chosen : mainKey(names);
  const messages = name === undefined ? undefined : name === HISTORY ? history : chats.get(name);
  if (name === undefined || !messages)
    return (
      <Empty title="Neither a key nor the history of this thread holds messages.">
        <p>
          A key does if it is an array of objects with a <code>role</code>, such as <code>{'{"role": "user", "content": "Hello"}'}</code>. The history
          does if most of its items are such objects.
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
      <Chat key={name} messages={messages} name={name === HISTORY ? "History" : name} isSearched />
      {canWrite && name !== HISTORY && <Send view={view} name={name} />}
    </>
  );
}

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
      <input aria-label="Message" placeholder={`Add a message to ${excerpt(name, 40)}`} value={content} onInput={(event) => setContent(event.currentTarget.value)} />
      <button type="submit" class="primary" disabled={isBusy || !content}>
        Add
      </button>
    </form>
  );
}
