import { StrictMode, Suspense, Component, type ReactNode, useState } from "react";
import { createRoot, hydrateRoot } from "react-dom/client";
import { createClient, type ClientOptions } from "threadkeep";
import { ThreadProvider, useThread, useThreads } from "threadkeep/react";

interface Options {
  client?: ClientOptions;
  strict?: boolean;
  suspense?: boolean;
  initialState?: object;
  hydrate?: boolean;
  list?: boolean;
}

interface View {
  state: { [key: string]: any };
  status: string;
  pending: number;
  version: number;
  id: string | undefined;
  error: string | undefined;
}

const page = {
  createClient,
  views: [] as View[],
  thread: undefined as ReturnType<typeof useThread> | undefined,
  list: undefined as ReturnType<typeof useThreads> | undefined,
  callbacks: new Set<unknown>(),
  unmount: () => {},
  setCount: (_: number) => {},
  start,
};
(globalThis as any).page = page;

export function Conversation({ options }: { options: Options }): ReactNode {
  const { suspense, initialState } = options;
  const thread = useThread({ suspense, initialState });
  const { state, status, pending, version, id, error } = thread;
  if (typeof document === "object") {
    page.thread = thread;
    page.callbacks.add(thread.push);
    page.views.push({ state, status, pending, version, id, error: error?.code });
  }
  return <pre>{JSON.stringify(state)}</pre>;
}

function List(): ReactNode {
  page.list = useThreads({ limit: 2 });
  return <b>{page.list.threads.length}</b>;
}

class Boundary extends Component<{ children: ReactNode }, { code?: string }> {
  override state: { code?: string } = {};
  static getDerivedStateFromError(error: { code?: string }) {
    return { code: String(error.code) };
  }
  override render(): ReactNode {
    return this.state.code ? <i>{this.state.code}</i> : this.props.children;
  }
}

function Components({ options }: { options: Options }): ReactNode {
  const [count, setCount] = useState(2);
  page.setCount = setCount;
  return Array.from({ length: count }, (_, index) => <Conversation key={index} options={options} />);
}

export function App({ options }: { options: Options }): ReactNode {
  const [client] = useState(() => createClient({ ...options.client }));
  const content = (
    <ThreadProvider client={client}>
      <Boundary>
        <Suspense fallback={<em>waiting</em>}>
          <Components options={options} />
          {options.list && <List />}
        </Suspense>
      </Boundary>
    </ThreadProvider>
  );
  return options.strict ? <StrictMode>{content}</StrictMode> : content;
}

function start(options: Options): void {
  const container = document.getElementById("root")!;
  if (options.hydrate) {
    const root = hydrateRoot(container, <App options={options} />, {
      onRecoverableError: (error) => ((globalThis as any).hydrationError = String(error)),
    });
    page.unmount = () => root.unmount();
  } else {
    const root = createRoot(container);
    root.render(<App options={options} />);
    page.unmount = () => root.unmount();
  }
}
