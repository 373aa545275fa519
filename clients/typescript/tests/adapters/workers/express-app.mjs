import { once } from "node:events";
import express from "express";
import session from "express-session";
import { ThreadkeepStore } from "threadkeep/express-session";
import { options } from "../support/servers.mjs";

const stores = {
  threadkeep: (number, prefix) => new ThreadkeepStore(options(number, { prefix })),
  memory: () => new session.MemoryStore(),
};

export async function serve(number, { store, prefix, cookie }) {
  const app = express();
  const secret = "a secret of the tests";
  app.use(session({ store: stores[store](number, prefix), secret, resave: false, saveUninitialized: false, cookie }));
  app.get("/login", ({ session }, response) => {
    Object.assign(session, { user: { name: "Ada" }, visits: [], cart: { items: {} }, mode: "light" });
    response.json({});
  });
  // requests that have loaded their session and are waiting for /release, so that they all overlap
  const held = [];
  app.get("/held", (request, response) => response.json(held.length));
  app.get("/release", (request, response) => {
    for (const other of held.splice(0)) other.json({});
    response.json({});
  });
  app.post("/visit/:id", (request, response) => {
    const { id } = request.params;
    const { visits, cart } = request.session;
    visits.push(id);
    cart.items[id] = { count: 1 };
    request.session[`key-${id}`] = id;
    held.push(response);
  });
  app.get("/read", ({ session }, response) => {
    const { cookie, ...rest } = session;
    response.json(rest);
  });
  app.post("/logout", (request, response) => request.session.destroy(() => response.json({})));
  app.post("/slow", (request, response) => {
    request.session.late = true;
    held.push(response);
  });
  app.use((error, request, response, next) => response.status(500).json({ code: error.code }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}
