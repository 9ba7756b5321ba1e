/** Starts and stops it all. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Broker } from './broker.ts';
import { type Governor, makeGovernor } from './calls/governor.ts';
import { startRecovery } from './calls/recovery.ts';
import type { Config } from './config.ts';
import { startHousekeeping } from './housekeeping.ts';
import { makeApp } from './http/app.ts';
import { makeLog } from './log.ts';
import { openStore, startBroker } from './start.ts';

export type Running = {
  baseUrl: string;
  broker: Broker;
  governor: Governor;
  masterKeyCreated: boolean;
  /** Finishes what is in flight (10 s at most), then closes the store. Safe to call twice. */
  stop(): Promise<void>;
};

export type ServeOptions = {
  clock?: () => number;
  /** Origins (`host:port`) of our own test platforms on loopback: the sandbox. */
  allowPrivate?: readonly string[];
  /** Runs when everything is up and before the first request is answered. */
  beforeServing?: (governor: Governor) => Promise<void>;
};

/** What the command line on this machine finds a running broker by. */
export const runFile = (dataFolder: string): string => join(dataFolder, 'run', 'broker.json');

const GRACE_MS = 10_000;

/** Starts the broker. Throws, with everything closed again, when it cannot. */
export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const log = makeLog(config.logLevel);
  const store = await openStore(config, log);
  const undo: (() => Promise<void> | void)[] = [() => store.close()];
  try {
    const server = createServer({ maxHeaderSize: 16 * 1024, headersTimeout: 15_000, requestTimeout: 60_000 });
    // The port is taken before anything else is made; whoever comes too early waits for the rest.
    const early = holdRequests(server);
    const port = await listen(server, config);
    undo.push(() => close(server));
    const baseUrl = config.baseUrl ?? `http://localhost:${port}`;
    const { broker, masterKeyCreated } = await startBroker(store, {
      config,
      log,
      clock: options.clock ?? Date.now,
      baseUrl,
      own: ownAddresses(baseUrl, config.host, port),
      ...(options.allowPrivate && { allowPrivate: options.allowPrivate }),
    });
    undo.push(() => broker.outbound.close());
    const governor = makeGovernor(broker);
    undo.push(() => governor.recorder.drained());
    const recovery = await startRecovery(broker, governor.recorder);
    undo.push(() => recovery.stop());
    await options.beforeServing?.(governor);
    const housekeeping = startHousekeeping(broker);
    undo.push(() => housekeeping.stop());
    const local = writeRunFile(config, baseUrl, governor);
    undo.push(() => rmSync(local, { force: true }));
    early.release(makeApp(governor));
    log.info({ baseUrl, store: store.dialect }, 'the broker is running');
    let stopping: Promise<void> | undefined;
    const stop = () => {
      // First what takes new work, then what works, then what stores it.
      stopping ??= (async () => {
        await close(server);
        for (const step of undo.splice(0).reverse()) await step();
        log.info('the broker has stopped');
      })();
      return stopping;
    };
    return { baseUrl, broker, governor, masterKeyCreated, stop };
  } catch (error) {
    for (const step of undo.reverse()) await step();
    throw error;
  }
}

function holdRequests(server: Server): { release(app: RequestListener): void } {
  const held: [IncomingMessage, ServerResponse][] = [];
  const hold = (request: IncomingMessage, response: ServerResponse) => held.push([request, response]);
  server.on('request', hold);
  return {
    release: (app) => {
      server.off('request', hold);
      server.on('request', app);
      for (const [request, response] of held) app(request, response);
    },
  };
}

function listen(server: Server, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(
              `Port ${config.port} on ${config.host} is taken: another broker, or another program, listens there. Choose another with PORT.`,
            )
          : error,
      ),
    );
    server.listen(config.port, config.host, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Stops listening, lets what is in flight finish within the grace, then cuts what is left. */
async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  await new Promise<void>((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), GRACE_MS);
    // A connection that is kept alive becomes idle only when its answer is out.
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(sweep);
      resolve();
    });
    server.closeIdleConnections();
  });
}

/** Where a call of ours would come back to us. */
function ownAddresses(baseUrl: string, host: string, port: number): string[] {
  const url = new URL(baseUrl);
  const publicPort = url.port || (url.protocol === 'https:' ? '443' : '80');
  const listener = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return [
    ...new Set([`${url.hostname}:${publicPort}`, listener, `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]),
  ];
}

function writeRunFile(config: Config, baseUrl: string, governor: Governor): string {
  const path = runFile(config.dataFolder);
  mkdirSync(join(config.dataFolder, 'run'), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  const content = { url: baseUrl, pid: process.pid, local_token: governor.local.token.reveal() };
  writeFileSync(path, `${JSON.stringify(content)}\n`, { mode: 0o600, flag: 'wx' });
  return path;
}
