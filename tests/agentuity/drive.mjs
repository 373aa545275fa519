// Drives two processes of the app over HTTP. agentuity.sh passes the settings for `Stage.open` as one JSON argument.

import { kv } from "./kv.mjs";
import { outages } from "./outages.mjs";
import { Stage } from "./stage.mjs";
import { states } from "./states.mjs";
import { threads } from "./threads.mjs";
import { together } from "./together.mjs";

const settings = JSON.parse(process.argv[2]);
const tell = (claim) => `@agentuity/runtime ${settings.version}: ${claim}`;

const all = [...threads, ...together, ...states, ...kv, ...outages];
const claims = all.filter(([claim]) => claim.includes(settings.only));
if (claims.length === 0) throw new Error(`no check has "${settings.only}" in its line`);

const stage = await Stage.open(settings);
for (const [claim, check] of claims) {
  try {
    const found = await check(stage);
    console.log(tell(claim + (found ? `; ${found}` : "")));
  } catch (error) {
    const place = /\(?file:.*\)?$/m.exec(error.stack)?.[0];
    console.error(`${tell(`FAILED: ${claim}`)}\n${error.message}\n    at ${place}`);
    process.exitCode = 1;
  }
}
await stage.close();
