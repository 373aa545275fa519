import { smoke } from "./smoke.js";

declare const process: { env: { [name: string]: string } };

console.log(await smoke(process.env["BASE_URL"]!));
