import { useState } from "preact/hooks";
import { callJson } from "../api/request.js";
import type { Setting } from "../api/types.js";
import { visible } from "../json/visible.js";
import { useLoad } from "../load.js";
import { can, close, isKept, server, session } from "../session.js";
import { type Theme, theme } from "../theme.js";
import { Copy } from "../ui/copy.js";
import { Empty, Failure, Loading, Missing } from "../ui/notices.js";

export function SettingsPage() {
  const isAllowed = can("admin");
  const { value, problem, reload } = useLoad(
    async (signal) => (isAllowed ? (await callJson<{ settings: Setting[] }>("/v1/settings", { signal })).settings : []),
    [isAllowed],
  );
  const [search, setSearch] = useState("");
  const [isChangedOnly, setChangedOnly] = useState(false);
  const term = search.trim().toLowerCase();
  const found = (value ?? []).filter(
    ({ name, help, source }) => (name + help).toLowerCase().includes(term) && (!isChangedOnly || source !== "default"),
  );
  const groups = [...new Set(found.map(({ group }) => group))];
  return (
    <>
      <h1>Settings</h1>
      <section class="card">
        <h2>This console</h2>
        <div class="filters">
          <label class="field">
            <span>Theme</span>
            <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
              <option value="system">as the system</option>
              <option value="light">light</option>
              <option value="dark">dark</option>
            </select>
          </label>
        </div>
        <p>
          API key <strong>{session.value?.name}</strong> with the rights{" "}
          {session.value?.rights.map((right) => (
            <span key={right} class="chip">
              {right}
            </span>
          ))}
        </p>
        <p class="dim">
          {isKept.value
            ? "This tab keeps the key until you close the tab or forget the key, even if you reload the page."
            : "The key is only in the memory of this tab. Closing or reloading the tab forgets the key."}
        </p>
        <p>
          <button type="button" onClick={() => close()}>
            Forget the key
          </button>
        </p>
        {server.value && (
          <p class="dim">
            {server.value.name} {server.value.version}, threads {server.value.store === "redis" ? "in Redis" : "in memory"}
          </p>
        )}
      </section>
      <h2>Server</h2>
      {!isAllowed && <Missing right="admin" />}
      {problem && (problem.status === 404 ? <Empty title="This server does not list its settings." /> : <Failure problem={problem} onRetry={reload} />)}
      {isAllowed && !value && !problem && <Loading />}
      {value && value.length > 0 && (
        <>
          <p class="dim">
            As printed by <code>threadkeep config</code>. To change a setting, use a file, variable or flag, and restart the server.
          </p>
          <div class="filters">
            <label class="field">
              <span>Find a setting</span>
              <input type="search" data-search value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
            </label>
            <label class="check">
              <input type="checkbox" checked={isChangedOnly} onChange={() => setChangedOnly(!isChangedOnly)} /> only those that are set
            </label>
          </div>
          {found.length === 0 && <p class="dim">No setting fits.</p>}
        </>
      )}
      {groups.map((group) => (
        <section key={group}>
          <h3>{group}</h3>
          <dl class="settings">
            {found
              .filter((setting) => setting.group === group)
              .map((setting) => (
                <div key={setting.name} data-line tabIndex={-1} class={setting.source === "default" ? "" : "set"}>
                  <dt>
                    <code>{setting.name}</code> <Copy text={setting.name} name="name" />
                  </dt>
                  <dd>
                    <p>
                      <bdi class="value break">{setting.value === "" ? "–" : visible(setting.value)}</bdi>{" "}
                      <span class="dim">{setting.source === "default" ? "default" : `from ${visible(setting.source)}, default ${setting.default}`}</span>
                    </p>
                    <details>
                      <summary data-open>About {setting.name}</summary>
                      <p class="help">{setting.help}</p>
                    </details>
                  </dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </>
  );
}
