// A TCP proxy whose connections can be cut, restored and redirected.

import { createServer, connect } from "node:net";

export class Link {
  #target;
  #tap;
  #server;
  #pairs = new Set();
  #cut = false;

  // `target` is { port, host } or { path }. The link calls tap() for each connection. It passes the bytes to
  // `up(chunk)` and `down(chunk)` of the returned object, and calls `closed()` when the connection ends.
  constructor(target, tap = undefined) {
    this.#target = target;
    this.#tap = tap;
  }

  static async to(target, tap) {
    const link = new Link(target, tap);
    link.#server = createServer((client) => link.#pass(client));
    await new Promise((resolve) => link.#server.listen(0, "127.0.0.1", resolve));
    return link;
  }

  get port() {
    return this.#server.address().port;
  }

  // Closes all connections. Rejects new connections until `restore`.
  cut() {
    this.#cut = true;
    for (const pair of this.#pairs) pair.forEach((socket) => socket.destroy());
  }

  restore() {
    this.#cut = false;
  }

  // Directs new connections to another server. Open connections are unaffected.
  move(target) {
    this.#target = target;
  }

  close() {
    this.cut();
    this.#server.close();
  }

  #pass(client) {
    if (this.#cut) return client.destroy();
    const server = connect(this.#target);
    const pair = [client, server];
    const tap = this.#tap?.();
    this.#pairs.add(pair);
    client.on("data", (chunk) => tap?.up(chunk));
    server.on("data", (chunk) => tap?.down(chunk));
    client.pipe(server);
    server.pipe(client);
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        pair.forEach((side) => side.destroySoon());
        if (this.#pairs.delete(pair)) tap?.closed();
      });
    }
  }
}
