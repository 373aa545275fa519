import { promisify } from "node:util";
import { ThreadkeepStore } from "threadkeep/express-session";

const cookie = () => ({ originalMaxAge: 60_000, expires: new Date(Date.now() + 60_000), path: "/" });

export const tooLarge = 1_100_000;

export function open(options, sid) {
  const store = new ThreadkeepStore(options);
  const load = promisify(store.load.bind(store));
  const save = promisify(store.set.bind(store));
  return {
    async append(text) {
      const session = (await load(sid)) ?? store.createSession({ sessionID: sid, sessionStore: store }, { cookie: cookie() });
      (session.texts ??= []).push(text);
      await save(sid, session);
    },
    items: async () => (await load(sid))?.texts ?? [],
  };
}
