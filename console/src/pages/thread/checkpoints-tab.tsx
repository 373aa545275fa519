import { useState } from "preact/hooks";
import { call, callJson } from "../../api/request.js";
import type { Checkpoint } from "../../api/types.js";
import { bytes, count } from "../../format.js";
import { visible } from "../../json/visible.js";
import { useLoad } from "../../load.js";
import { announce } from "../../ui/announce.js";
import { Confirm } from "../../ui/confirm.js";
import { Empty, Failure, Loading } from "../../ui/notices.js";
import { Ago } from "../../ui/time.js";
import { ForkDialog } from "./dialogs.js";
import type { ThreadView } from "./view.js";

type Open = { kind: "save" } | { kind: "restore" | "delete" | "fork"; checkpoint: Checkpoint };

export function CheckpointsTab({ view, canWrite }: { view: ThreadView; canWrite: boolean }) {
  const path = `/v1/threads/${view.id}/checkpoints`;
  const { value, problem, reload } = useLoad((signal) => callJson<{ checkpoints: Checkpoint[] }>(path, { signal }), [path]);
  const [open, setOpen] = useState<Open>();
  const [name, setName] = useState("");
  const close = () => setOpen(undefined);
  const act = (method: string, path: string, done: string, body?: string) => async () => {
    await call(path, { method, body });
    announce(done);
    reload();
  };
  return (
    <>
      {canWrite && (
        <div class="actions">
          <button type="button" onClick={() => setOpen({ kind: "save" })}>
            Save a checkpoint
          </button>
        </div>
      )}
      {problem && <Failure problem={problem} onRetry={reload} />}
      {!value && !problem && <Loading />}
      {value?.checkpoints.length === 0 && (
        <Empty title="There is no checkpoint.">
          <p>A checkpoint saves the current state and metadata. You can restore it or fork from it.</p>
        </Empty>
      )}
      <ul class="rows">
        {value?.checkpoints.map((checkpoint) => (
          <li key={checkpoint.checkpoint} class="row" data-line tabIndex={-1}>
            <span class="num">{checkpoint.checkpoint}</span>
            <bdi class="grow">{checkpoint.name === null ? "" : visible(checkpoint.name)}</bdi>
            <span>version {count(checkpoint.version)}</span>
            <span>{bytes(checkpoint.size_bytes)}</span>
            <Ago at={checkpoint.created_at} />
            {canWrite && (
              <span class="actions">
                <button type="button" data-open onClick={() => setOpen({ kind: "restore", checkpoint })}>
                  Restore
                </button>
                <button type="button" onClick={() => setOpen({ kind: "fork", checkpoint })}>
                  Fork
                </button>
                <button type="button" class="danger" onClick={() => setOpen({ kind: "delete", checkpoint })}>
                  Delete
                </button>
              </span>
            )}
          </li>
        ))}
      </ul>
      {open?.kind === "save" && (
        <Confirm title="Save a checkpoint" verb="Save" onClose={close} act={act("POST", path, "Saved", JSON.stringify(name ? { name } : {}))}>
          <label class="field">
            <span>Name (optional)</span>
            <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
        </Confirm>
      )}
      {open?.kind === "restore" && (
        <Confirm
          title={`Restore checkpoint ${open.checkpoint.checkpoint}`}
          verb="Restore"
          isDangerous
          onClose={close}
          act={act("POST", `${path}/${open.checkpoint.checkpoint}/restore`, "Restored")}
        >
          <p>Replaces state and metadata with those of the checkpoint, in one write. To keep the current ones, save a checkpoint first.</p>
        </Confirm>
      )}
      {open?.kind === "delete" && (
        <Confirm
          title={`Delete checkpoint ${open.checkpoint.checkpoint}`}
          verb="Delete"
          isDangerous
          onClose={close}
          act={act("DELETE", `${path}/${open.checkpoint.checkpoint}`, "Deleted")}
        />
      )}
      {open?.kind === "fork" && <ForkDialog view={view} checkpoint={open.checkpoint.checkpoint} onClose={close} />}
    </>
  );
}
