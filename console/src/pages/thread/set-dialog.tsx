import { useState } from "preact/hooks";
import { Problem } from "../../api/problem.js";
import { compareAndSetKey } from "../../api/state.js";
import { readableExcerpt } from "../../json/visible.js";
import { announce } from "../../ui/announce.js";
import { Confirm } from "../../ui/confirm.js";
import type { ThreadView } from "./view.js";

const SHOWN_MAX = 2_000;

/** Sets a key. Replaces an existing value only after showing that value to the user. */
export function SetDialog({ view, onClose }: { view: ThreadView; onClose: () => void }) {
  const [key, setKey] = useState("");
  const [text, setText] = useState("");
  const [existing, setExisting] = useState<string>();
  const act = async () => {
    const conflict = await compareAndSetKey(view.id, key, existing, text);
    if (!conflict) return announce(existing === undefined ? "Set" : "Replaced");
    setExisting(conflict.value);
    throw new Problem(0, "nothing_changed", reasonOf(existing, conflict.value));
  };
  return (
    <Confirm title="Set a key" verb={existing === undefined ? "Set" : "Replace"} isDangerous={existing !== undefined} act={act} onClose={onClose}>
      <label class="field">
        <span>Key</span>
        <input
          value={key}
          required
          onInput={(event) => {
            setKey(event.currentTarget.value);
            setExisting(undefined);
          }}
        />
      </label>
      <label class="field">
        <span>Value as JSON</span>
        <textarea class="editor" rows={6} spellcheck={false} required value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {existing !== undefined && (
        <div class="notice">
          <p>This replaces the current value of the key:</p>
          <pre class="whole" dir="auto" tabIndex={0} aria-label="Value of the key">
            {readableExcerpt(existing, SHOWN_MAX)}
          </pre>
        </div>
      )}
    </Confirm>
  );
}

function reasonOf(before: string | undefined, now: string | undefined): string {
  if (before === undefined) return "The thread has this key. Choose another name, or replace its value.";
  return now === undefined ? "The key was deleted meanwhile. Setting it creates it again." : "The key has another value meanwhile.";
}
