/** A TCP proxy in front of a real server that can cut, freeze and delay connections. */
import net, { type AddressInfo, type Socket } from 'node:net';
import type { Db } from '../../../broker/store/store.ts';
import { afterFile } from '../runner/after-file.ts';

export type FaultProxy = {
  /** The server's URL, through the proxy. */
  url: string;
  /** Closes all connections, and refuses new ones. */
  cut(): Promise<void>;
  /** Accepts connections again; for another server, when a URL is given. */
  repair(to?: string): Promise<void>;
  /** Directs new connections to another server; existing ones stay, as with a name whose address changes. */
  lead(to: string): void;
  /** Keeps all connections open but forwards nothing, like a server that hangs; `thaw` forwards everything. */
  freeze(): void;
  thaw(): void;
  /** Delays everything by so many milliseconds, in both directions. */
  slow(ms: number): void;
};

/** Starts a proxy to the host and port of a URL. */
export async function startFaultProxy(url: string): Promise<FaultProxy> {
  let target = new URL(url);
  const sockets = new Set<Socket>();
  let frozen = false;
  let delayMs = 0;
  const server = net.createServer((near) => {
    const far = net.connect(Number(target.port || 5432), target.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.on('data', (chunk) => {
        if (delayMs === 0) other.write(chunk);
        else setTimeout(() => other.write(chunk), delayMs);
      });
      socket.on('end', () => other.end());
      if (frozen) socket.pause();
    }
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const cut = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  afterFile(() => (server.listening ? cut() : undefined));
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String(port);
  return {
    url: through.href,
    cut,
    repair: async (to) => {
      if (to !== undefined) target = new URL(to);
      await listen(port);
    },
    lead: (to) => {
      target = new URL(to);
    },
    freeze: () => {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      frozen = false;
      for (const socket of sockets) socket.resume();
    },
    slow: (ms) => {
      delayMs = ms;
    },
  };
}

/** Renames tables, by default those that every call reads, so that queries on them fail. Returns a function that restores them. */
export async function hideTables(db: Db, tables = ['agents', 'fact_versions']): Promise<() => Promise<void>> {
  for (const table of tables) await db.schema.alterTable(table).renameTo(`${table}_hidden`).execute();
  return async () => {
    for (const table of tables) await db.schema.alterTable(`${table}_hidden`).renameTo(table).execute();
  };
}
