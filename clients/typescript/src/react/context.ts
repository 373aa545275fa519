"use client";

import { createContext, createElement, type ReactNode, useContext, useState } from "react";
import { createClient } from "../client.js";
import type { Client } from "../types/client.js";
import type { ClientOptions } from "../types/options.js";

const ClientContext = createContext<Client | undefined>(undefined);

/** Provides a client to the hooks of the components inside it. */
export function ThreadProvider(
  props: ({ client: Client } | { options: ClientOptions }) & { children?: ReactNode },
): ReactNode {
  const [own] = useState(() => ("client" in props ? undefined : createClient(props.options)));
  const client = "client" in props ? props.client : own;
  return createElement(ClientContext.Provider, { value: client }, props.children);
}

export function useClient(given: Client | undefined): Client {
  const provided = useContext(ClientContext);
  const client = given ?? provided;
  if (!client) throw new TypeError("Pass a client, or render a ThreadProvider above this component.");
  return client;
}
