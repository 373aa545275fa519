import { useState } from "preact/hooks";
import { call, callJson } from "../api/request.js";
import { EVENT_TYPES, type Webhook } from "../api/types.js";
import { count } from "../format.js";
import { visible } from "../json/visible.js";
import { useLoad, usePolled } from "../load.js";
import { can } from "../session.js";
import { deliveriesOf } from "../stats/metrics.js";
import { announce } from "../ui/announce.js";
import { Confirm } from "../ui/confirm.js";
import { Copy } from "../ui/copy.js";
import { Dialog } from "../ui/dialog.js";
import { Empty, Failure, Loading, Missing } from "../ui/notices.js";
import { Ago } from "../ui/time.js";
import { Failed, Pending, REFRESH_MS } from "./deliveries.js";

const COUNTERS = new Map([
  ["delivered", "Delivered"],
  ["attempt_failed", "Failed attempts"],
  ["failed", "Failed for good"],
]);

type Open = { kind: "create" } | { kind: "delete" | "secret"; webhook: Webhook };

export function WebhooksPage() {
  const isAllowed = can("webhooks");
  const { value, problem, reload } = useLoad(
    async (signal) => (isAllowed ? (await callJson<{ webhooks: Webhook[] }>("/v1/webhooks", { signal })).webhooks : []),
    [isAllowed],
  );
  const deliveries = usePolled(async (signal) => deliveriesOf((await call("/metrics", { signal })).text), [], REFRESH_MS);
  const [open, setOpen] = useState<Open>();
  const [secret, setSecret] = useState<string>();
  const [search, setSearch] = useState("");
  if (!isAllowed) return <Missing right="webhooks" />;
  const close = () => setOpen(undefined);
  const term = search.trim().toLowerCase();
  const found = value?.filter(({ id, url, name, events }) => [id, url, name ?? "", ...events].some((text) => text.toLowerCase().includes(term)));
  return (
    <>
      <header class="page-head">
        <h1>Webhooks</h1>
        <button type="button" class="primary" onClick={() => setOpen({ kind: "create" })}>
          New endpoint
        </button>
      </header>
      {deliveries.value && deliveries.value.size > 0 && (
        <>
          <p class="dim">
            Counted by the replica that answers, since its start. Counts and pending deliveries refresh every {REFRESH_MS / 1_000} seconds.
          </p>
          <dl class="tiles">
            {[...deliveries.value].map(([outcome, number]) => (
              <div key={outcome}>
                <dt>{COUNTERS.get(outcome) ?? outcome}</dt>
                <dd>{count(number)}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
      {problem && <Failure problem={problem} onRetry={reload} />}
      {!value && !problem && <Loading />}
      {value?.length === 0 && (
        <Empty title="There is no endpoint.">
          <p>
            With one, the server posts events there as they happen, signed by the rules of Standard Webhooks. You can also set them with{" "}
            <code>webhooks</code>.
          </p>
        </Empty>
      )}
      {value && value.length > 1 && (
        <label class="field">
          <span>Find an endpoint</span>
          <input type="search" data-search value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
      )}
      {value && value.length > 0 && found?.length === 0 && <p class="dim">No endpoint contains this text.</p>}
      {found?.map((webhook) => (
        <section key={webhook.id} class="card" data-line tabIndex={-1}>
          <div class="card-head">
            <h2>
              <bdi class="break">{visible(webhook.url)}</bdi>
            </h2>
            {webhook.name === null ? (
              <span class="actions">
                <button type="button" onClick={() => setOpen({ kind: "secret", webhook })}>
                  New secret
                </button>
                <button type="button" class="danger" onClick={() => setOpen({ kind: "delete", webhook })}>
                  Delete
                </button>
              </span>
            ) : (
              <span class="chip">settings: {webhook.name}</span>
            )}
          </div>
          <p class="id">
            <code>{webhook.id}</code> <Copy text={webhook.id} name="id" />
            {webhook.created_at && (
              <span class="dim">
                created <Ago at={webhook.created_at} />
              </span>
            )}
          </p>
          <p class="chips">
            {webhook.events.map((type) => (
              <span key={type} class="chip">
                {type}
              </span>
            ))}
          </p>
          <Pending id={webhook.id} />
          <Failed id={webhook.id} />
        </section>
      ))}
      {open?.kind === "create" && (
        <Create
          onClose={close}
          onCreated={(made) => {
            setSecret(made.secret);
            reload();
          }}
        />
      )}
      {open?.kind === "delete" && (
        <Confirm
          title="Delete the endpoint"
          verb="Delete"
          isDangerous
          onClose={close}
          act={async () => {
            await call(`/v1/webhooks/${open.webhook.id}`, { method: "DELETE" });
            announce("Deleted");
            reload();
          }}
        >
          <p>Stops all deliveries to this endpoint, and deletes its failed deliveries.</p>
        </Confirm>
      )}
      {open?.kind === "secret" && (
        <Confirm
          title="New secret"
          verb="Create"
          isDangerous
          onClose={close}
          act={async () => {
            const made = await callJson<Webhook>(`/v1/webhooks/${open.webhook.id}`, { method: "PATCH", body: '{"secret":null}' });
            setSecret(made.secret);
          }}
        >
          <p>The old secret also signs for another 24 hours.</p>
        </Confirm>
      )}
      {secret !== undefined && (
        <Dialog title="The secret of the endpoint" onClose={() => setSecret(undefined)}>
          <p>The receiver verifies deliveries with this secret. The service shows the secret only once.</p>
          <p class="id">
            <code class="break">{secret}</code> <Copy text={secret} name="secret" />
          </p>
        </Dialog>
      )}
    </>
  );
}

function Create({ onClose, onCreated }: { onClose: () => void; onCreated: (made: Webhook) => void }) {
  const [url, setUrl] = useState("");
  const [types, setTypes] = useState<string[]>(["thread.destroyed"]);
  const toggle = (type: string) => setTypes(types.includes(type) ? types.filter((other) => other !== type) : [...types, type]);
  return (
    <Confirm
      title="New endpoint"
      verb="Create"
      onClose={onClose}
      act={async () => onCreated(await callJson<Webhook>("/v1/webhooks", { method: "POST", body: JSON.stringify({ url, events: types }) }))}
    >
      <label class="field">
        <span>URL</span>
        <input type="url" required placeholder="https://example.com/hook" value={url} onInput={(event) => setUrl(event.currentTarget.value)} />
      </label>
      <fieldset class="chips">
        <legend>Events</legend>
        {EVENT_TYPES.map((type) => (
          <label key={type} class="check">
            <input type="checkbox" checked={types.includes(type)} onChange={() => toggle(type)} /> {type}
          </label>
        ))}
      </fieldset>
    </Confirm>
  );
}
