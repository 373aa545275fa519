import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Problem, asProblem } from "../api/problem.js";
import { Dialog } from "./dialog.js";
import { Failure } from "./notices.js";

/** Asks the user to confirm an action. Shows an error if the action fails. The user must type `word`, if set. */
export function Confirm({
  title,
  verb,
  word,
  isDangerous = false,
  act,
  onClose,
  children,
}: {
  title: string;
  verb: string;
  word?: string;
  isDangerous?: boolean;
  act: () => Promise<void>;
  onClose: () => void;
  children?: ComponentChildren;
}) {
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await act();
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {word && (
          <label class="field">
            <span>
              Type <code>{word}</code> to confirm
            </span>
            <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" />
          </label>
        )}
        {problem && <Failure problem={problem} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={isBusy || (word !== undefined && typed !== word)}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
