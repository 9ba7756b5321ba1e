/** A wire that can be cut: a TCP proxy before a real server, so that the server is away and comes back. */
import net, { type AddressInfo, type Socket } from 'node:net';
import type { Db } from '../../broker/store/store.ts';
import { afterFile } from './after-file.ts';

export type Cut = {
  /** The URL of the server, by way of the wire. */
  url: string;
  /** Ends every connection, and refuses new ones. */
  cut(): Promise<void>;
  /** Connections come through again; to another server, where a URL is given. */
  repair(to?: string): Promise<void>;
  /** Leads new connections to another server; those that are there stay, as with a name whose address changes. */
  lead(to: string): void;
  /** Keeps every connection open and passes nothing on, as a server that hangs; `thaw` passes everything on. */
  freeze(): void;
  thaw(): void;
  /** Passes everything on so many milliseconds later, each way, as a server that is far away. */
  slow(ms: number): void;
};

/** Lays a wire to the host and port of a URL. */
export async function startCut(url: string): Promise<Cut> {
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

/** Takes away tables, those that every call reads unless told, as if the store could not be read. Answers what puts them back. */
export async function hideTables(db: Db, tables = ['agents', 'fact_versions']): Promise<() => Promise<void>> {
  for (const table of tables) await db.schema.alterTable(table).renameTo(`${table}_hidden`).execute();
  return async () => {
    for (const table of tables) await db.schema.alterTable(`${table}_hidden`).renameTo(table).execute();
  };
}
