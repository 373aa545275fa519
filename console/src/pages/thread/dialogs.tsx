import { useState } from "preact/hooks";
import { type Problem, asProblem } from "../../api/problem.js";
import { call } from "../../api/request.js";
import { keyPath, deleteKey, pushValue, setKey } from "../../api/state.js";
import { threadOf } from "../../api/threads.js";
import { curl } from "../../curl.js";
import { bytes } from "../../format.js";
import { hrefOfThread } from "../../ids.js";
import { pretty } from "../../json/pretty.js";
import { bytesOf } from "../../json/text.js";
import { visible } from "../../json/visible.js";
import { go } from "../../route.js";
import { announce } from "../../ui/announce.js";
import { Command } from "../../ui/copy.js";
import { Confirm } from "../../ui/confirm.js";
import { Dialog } from "../../ui/dialog.js";
import { Failure } from "../../ui/notices.js";
import type { ThreadView } from "./view.js";

/** Maximum length of a value that can be edited in a text field. A longer value would stall the page. */
const EDITED_MAX = 200_000;

/** Edits a value. Saves the value only if the thread has not changed since the dialog opened. */
export function EditDialog({ view, name, onClose }: { view: ThreadView; name: string; onClose: () => void }) {
  const [start] = useState(() => view.state.value.get(name) ?? "null");
  const [text, setText] = useState(() => (start.length <= EDITED_MAX ? pretty(start) : ""));
  const [version, setVersion] = useState(view.version);
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const isLarge = start.length > EDITED_MAX;
  const now = view.state.value.get(name);

  const act = async (write: () => Promise<unknown>, done: string) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await write();
      announce(done);
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const condition = () => ({ headers: { "if-match": `"${version}"` } });
  const save = () => act(() => setKey(view.id, name, text, condition()), "Saved");
  const remove = () => act(() => deleteKey(view.id, name, condition()), "Deleted");
  const newer = problem?.code === "version_mismatch" ? Number(problem.extensions["current_version"]) : undefined;

  return (
    <Dialog title={`Edit ${visible(name)}`} isWide onClose={onClose}>
      {isLarge ? (
        <>
          <p>This value has {bytes(bytesOf(start))}, too much to edit on a page. Change it with the API:</p>
          <Command name="command" text={curl("PUT", keyPath(view.id, name), { headers: [`if-match: "${version}"`], file: "value.json" })} />
        </>
      ) : (
        <label class="field">
          <span>
            Value as JSON. It is saved only if the thread still has version <strong>{version}</strong>.
          </span>
          <textarea class="editor" spellcheck={false} rows={16} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      )}
      {problem && <Failure problem={problem} />}
      {newer !== undefined && (
        <div class="notice">
          <p>
            {now === start
              ? "Another part of the thread has changed, but not this key."
              : now === undefined
                ? "This key was deleted meanwhile."
                : "This key has another value meanwhile. Saving replaces it."}
          </p>
          <div class="actions">
            {now !== undefined && now !== start && (
              <button type="button" onClick={() => setText(pretty(now))}>
                Take its value now
              </button>
            )}
            <button
              type="button"
              onClick={() => {
                setVersion(newer);
                setProblem(undefined);
              }}
            >
              Continue with version {newer}
            </button>
          </div>
        </div>
      )}
      <div class="actions">
        <button type="button" class="danger" onClick={remove} disabled={isBusy}>
          Delete the key
        </button>
        <span class="spacer" />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        {!isLarge && (
          <button type="button" class="primary" onClick={save} disabled={isBusy}>
            Save
          </button>
        )}
      </div>
    </Dialog>
  );
}

export function PushDialog({ view, onClose }: { view: ThreadView; onClose: () => void }) {
  const arrays = [...view.state.value].filter(([, text]) => text.startsWith("[")).map(([key]) => key);
  const [key, setName] = useState(arrays[0] ?? "messages");
  const [text, setText] = useState('{"role": "user", "content": ""}');
  const act = async () => {
    await pushValue(view.id, key, text);
    announce("Added");
  };
  return (
    <Confirm title="Add a message" verb="Add" act={act} onClose={onClose}>
      <label class="field">
        <span>Key</span>
        <input value={key} list="keys-of-arrays" required onInput={(event) => setName(event.currentTarget.value)} />
        <datalist id="keys-of-arrays">
          {arrays.slice(0, 100).map((key) => (
            <option key={key} value={key} />
          ))}
        </datalist>
      </label>
      <label class="field">
        <span>Value as JSON</span>
        <textarea class="editor" rows={6} spellcheck={false} required value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
    </Confirm>
  );
}

export function ChangeDialog({ view, onClose }: { view: ThreadView; onClose: () => void }) {
  const thread = view.thread.value;
  const [patch, setPatch] = useState("");
  const [ttl, setTtl] = useState(String(thread?.ttl_seconds ?? ""));
  const [owner, setOwner] = useState(thread?.owner ?? "");
  const act = async () => {
    const members: string[] = [];
    if (patch.trim()) members.push(`"metadata":${patch}`);
    if (Number(ttl) !== thread?.ttl_seconds) members.push(`"ttl_seconds":${JSON.stringify(Number(ttl))}`);
    if (owner !== (thread?.owner ?? "")) members.push(`"owner":${owner === "" ? "null" : JSON.stringify(owner)}`);
    if (members.length === 0) return;
    await call(`/v1/threads/${view.id}`, { method: "PATCH", body: `{${members.join(",")}}` });
    await view.refresh();
    announce("Changed");
  };
  return (
    <Confirm title="Change the thread" verb="Change" act={act} onClose={onClose}>
      <label class="field">
        <span>Merge patch for the metadata, as JSON. Null deletes a member.</span>
        <textarea class="editor" rows={4} spellcheck={false} placeholder='{"title": "A name"}' value={patch} onInput={(event) => setPatch(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>TTL in seconds</span>
        <input type="number" min={60} max={946_080_000} value={ttl} onInput={(event) => setTtl(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>Owner</span>
        <input value={owner} maxLength={256} onInput={(event) => setOwner(event.currentTarget.value)} />
      </label>
    </Confirm>
  );
}

export function ForkDialog({ view, checkpoint, onClose }: { view: ThreadView; checkpoint?: number; onClose: () => void }) {
  const [parts, setParts] = useState(["state", "scope", "history"]);
  const [owner, setOwner] = useState("");
  const act = async () => {
    const body: Record<string, unknown> = { include: parts };
    if (owner) body["owner"] = owner;
    if (checkpoint !== undefined) body["from_checkpoint"] = checkpoint;
    const { text } = await call(`/v1/threads/${view.id}/fork`, { method: "POST", body: JSON.stringify(body) });
    announce("Forked. This is the copy.");
    go(hrefOfThread(threadOf(text).id));
  };
  const toggle = (part: string) => setParts(parts.includes(part) ? parts.filter((other) => other !== part) : [...parts, part]);
  return (
    <Confirm title={checkpoint === undefined ? "Fork the thread" : `Fork from checkpoint ${checkpoint}`} verb="Fork" act={act} onClose={onClose}>
      <fieldset>
        <legend>Copy</legend>
        {["state", "scope", "history"].map((part) => (
          <label key={part} class="check">
            <input type="checkbox" checked={parts.includes(part)} onChange={() => toggle(part)} /> {part}
          </label>
        ))}
      </fieldset>
      <label class="field">
        <span>Owner of the copy (empty: same owner)</span>
        <input value={owner} maxLength={256} onInput={(event) => setOwner(event.currentTarget.value)} />
      </label>
    </Confirm>
  );
}

export function RotateDialog({ view, onClose }: { view: ThreadView; onClose: () => void }) {
  const act = async () => {
    const { text } = await call(`/v1/threads/${view.id}/rotate`, { method: "POST" });
    announce("Moved. This is its new id.");
    go(hrefOfThread(threadOf(text).id));
  };
  return (
    <Confirm title="Rotate the id" verb="Rotate" isDangerous act={act} onClose={onClose}>
      <p>The thread moves to a new id. Clients with the old id lose access, even with its signature.</p>
    </Confirm>
  );
}

export function DestroyDialog({ view, onClose }: { view: ThreadView; onClose: () => void }) {
  const act = async () => {
    await call(`/v1/threads/${view.id}`, { method: "DELETE" });
    announce("Destroyed");
  };
  return (
    <Confirm title="Destroy the thread" verb="Destroy" word="destroy" isDangerous act={act} onClose={onClose}>
      <p>
        The thread <code>{view.id}</code> ends now, with its state, history and checkpoints. While the service keeps archives, you can restore its
        state from there.
      </p>
    </Confirm>
  );
}
