import { callJson } from "../../api/request.js";
import { bytes, count } from "../../format.js";
import { excerpt, visible } from "../../json/visible.js";
import { useLoad } from "../../load.js";
import { can } from "../../session.js";
import { Empty, Failure, Loading, Missing } from "../../ui/notices.js";
import { Tree } from "../../ui/tree.js";
import type { ThreadView } from "./view.js";

interface ScopeDescription {
  exists: boolean;
  version: number;
  keys: number;
  size_bytes: number;
  tasks: number;
}

interface Task {
  id: string;
  content: string;
  status: string;
}

export function ScopeTab({ view }: { view: ThreadView }) {
  const scope = `thread:${view.id}`;
  const { value, problem, reload } = useLoad(
    async (signal) => {
      if (!can("scopes")) return undefined;
      const post = <T,>(path: string, members = {}) =>
        callJson<T>(`/v1/scopes/${path}`, { method: "POST", body: JSON.stringify({ scope, ...members }), signal });
      const description = await post<ScopeDescription>("describe");
      if (!description.exists) return { description, values: new Map<string, string>(), tasks: [] };
      const { keys } = await post<{ keys: string[] }>("keys/list");
      const read = keys.length > 0 ? await post<{ values: Record<string, string | null> }>("keys/get", { keys }) : { values: {} };
      const values = new Map(Object.entries(read.values).map(([key, value]) => [key, JSON.stringify(value)]));
      const { tasks } = await post<{ tasks: Task[] }>("tasks/get");
      return { description, values, tasks };
    },
    [scope],
  );
  if (!can("scopes")) return <Missing right="scopes" />;
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (!value) return <Loading />;
  const { description, values, tasks } = value;
  return (
    <>
      <div class="actions">
        <span class="dim">
          {description.exists ? `Version ${count(description.version)}, ${bytes(description.size_bytes)}` : "Not written yet"}
        </span>
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </div>
      {values.size === 0 && tasks.length === 0 && (
        <Empty title="The scope has neither keys nor tasks.">
          <p>
            Models write them with the tools <code>kv_write</code> and <code>tasks_write</code> in the scope <code>{scope}</code>.
          </p>
        </Empty>
      )}
      {values.size > 0 && (
        <>
          <h2>Keys</h2>
          <Tree name="Keys of the scope" values={values} />
        </>
      )}
      {tasks.length > 0 && (
        <>
          <h2>Tasks</h2>
          <ul class="rows">
            {tasks.map((task) => (
              <li key={task.id} class="row" data-line tabIndex={-1}>
                <span class={`chip task-${task.status}`}>{task.status.replace("_", " ")}</span>
                <bdi class="grow">{visible(excerpt(task.content, 500))}</bdi>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
