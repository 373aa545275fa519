// Drives two processes of the app over HTTP. agentuity.sh passes the settings for `Stage.open` as one JSON argument.

import { concurrent } from "./concurrent.mjs";
import { kv } from "./kv.mjs";
import { outages } from "./outages.mjs";
import { Stage } from "./stage.mjs";
import { states } from "./states.mjs";
import { threads } from "./threads.mjs";

const settings = JSON.parse(process.argv[2]);
const line = (text) => `@agentuity/runtime ${settings.version}: ${text}`;

const tests = [...threads, ...concurrent, ...states, ...kv, ...outages];
const selected = tests.filter(([name]) => name.includes(settings.only));
if (selected.length === 0) throw new Error(`no test has "${settings.only}" in its name`);

const stage = await Stage.open(settings);
for (const [name, test] of selected) {
  try {
    const details = await test(stage);
    console.log(line(name + (details ? `; ${details}` : "")));
  } catch (error) {
    const location = /\(?file:.*\)?$/m.exec(error.stack)?.[0];
    console.error(`${line(`FAILED: ${name}`)}\n${error.message}\n    at ${location}`);
    process.exitCode = 1;
  }
}
await stage.close();
