/** A connection to a browser's debugging protocol. */

// biome-ignore lint/suspicious/noExplicitAny: what a command answers, its caller knows.
type Result = any;

export type Devtools = {
  /** Throws the browser's error when it refuses a command. */
  command(method: string, params?: object): Promise<Result>;
  on(method: string, listener: (params: Result) => void): void;
  close(): void;
  /** Resolves when the connection is closed, by either side; pending commands are then never answered. */
  closed: Promise<unknown>;
};

/** Connects to one target (a browser or a page) by its WebSocket address. */
export async function connectDevtools(address: string): Promise<Devtools> {
  const socket = new WebSocket(address);
  await new Promise((opened, failed) => {
    socket.addEventListener('open', opened, { once: true });
    socket.addEventListener('error', () => failed(new Error(`no debugger at ${address}`)), { once: true });
  });
  const closed = new Promise((over) => socket.addEventListener('close', over, { once: true }));
  const waiting = new Map<number, (message: { result?: Result; error?: { message: string } }) => void>();
  const listeners = new Map<string, ((params: Result) => void)[]>();
  let last = 0;
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data));
    if (message.id) waiting.get(message.id)?.(message);
    else for (const listener of listeners.get(message.method) ?? []) listener(message.params);
  });
  return {
    command: (method, params = {}) =>
      new Promise((answered, refused) => {
        const id = ++last;
        waiting.set(id, ({ result, error }) => {
          waiting.delete(id);
          if (error) refused(new Error(`${method}: ${error.message}`));
          else answered(result);
        });
        socket.send(JSON.stringify({ id, method, params }));
      }),
    on: (method, listener) => listeners.set(method, [...(listeners.get(method) ?? []), listener]),
    close: () => socket.close(),
    closed,
  };
}
