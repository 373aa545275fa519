import { useState } from "preact/hooks";
import { open, server, sessionProblem } from "../session.js";
import { Icon } from "../ui/icon.js";
import { Failure } from "../ui/notices.js";

export function Login() {
  const [key, setKey] = useState("");
  const [isKept, setKept] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await open(key.trim(), isKept);
    setBusy(false);
  };
  const hasKeys = server.value?.api_keys !== false;
  return (
    <main class="login" tabIndex={-1}>
      <h1>
        <Icon size={32} /> threadkeep console
      </h1>
      <form onSubmit={submit}>
        <label class="field">
          <span>API key</span>
          <input type="password" autocomplete="off" required autofocus data-search value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          Open
        </button>
        <label class="check">
          <input type="checkbox" checked={isKept} onChange={() => setKept(!isKept)} /> Keep until I close the tab
        </label>
      </form>
      {sessionProblem.value && <Failure problem={sessionProblem.value} />}
      <p class="dim">
        The console shows and does what the key has the rights for. The key stays in the memory of this tab: close or reload the tab, and it is
        forgotten. If you keep it until you close the tab, it survives a reload.
      </p>
      {!hasKeys && (
        <p class="notice">
          This server has no API keys. If it keeps threads in memory and listens on this machine only, the terminal that it was started in shows a link
          that opens the console once. Otherwise set <code>api_keys</code>, for example to the output of <code>threadkeep keygen --name ops</code>.
        </p>
      )}
    </main>
  );
}
