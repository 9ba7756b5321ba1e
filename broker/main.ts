/** Starts and stops it all. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expireRegistrations } from './agents/registration.ts';
import { expireRequests } from './approvals/access-requests.ts';
import type { Broker } from './broker.ts';
import { expireHeld } from './calls/expiry.ts';
import { type Governor, makeGovernor } from './calls/governor.ts';
import { type Recovery, startRecovery } from './calls/recovery.ts';
import { revokeUncollected } from './calls/uncollected.ts';
import type { Config } from './config.ts';
import { consoleRoutes } from './console/routes.ts';
import { docsRoutes } from './docs/routes.ts';
import { startHousekeeping } from './housekeeping.ts';
import { makeApp } from './http/app.ts';
import type { Route } from './http/route.ts';
import { ROUTES } from './http/routes.ts';
import { type Listener, openListener, ownAddresses } from './listener.ts';
import { type Log, makeLog } from './log.ts';
import { runFile } from './run-file.ts';
import { openStore, startBroker } from './start.ts';
import type { Store } from './store/store.ts';

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
  /** How often, in milliseconds, this process says that it lives and looks for others that do not. */
  beatMs?: number;
};

const GRACE_MS = 10_000;
/** For calls that were cut off to be recorded as what they are. */
const SETTLE_MS = 5_000;

/** What is open, in the order in which it was opened. */
type Open = {
  store: Store;
  listener?: Listener;
  broker?: Broker;
  governor?: Governor;
  recovery?: Recovery;
  housekeeping?: { stop(): Promise<void> };
  local?: { remove(): void };
};

/** Everything that a broker answers to. */
export const servedRoutes = (): readonly Route[] => [...ROUTES, ...consoleRoutes(), ...docsRoutes(ROUTES)];

/** Starts the broker. Throws, with everything closed again, when it cannot. */
export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const log = makeLog(config.logLevel);
  const open: Open = { store: await openStore(config, log) };
  try {
    // The port is taken before a key or an address is made that names it; whoever comes too early waits for the rest.
    const listener = await openListener(config, log);
    open.listener = listener;
    const baseUrl = config.baseUrl ?? `http://localhost:${listener.port}`;
    const { broker, masterKeyCreated } = await startBroker(open.store, {
      config,
      log,
      clock: options.clock ?? Date.now,
      baseUrl,
      own: ownAddresses(baseUrl, config.host, listener.port),
      ...(options.allowPrivate && { allowPrivate: options.allowPrivate }),
    });
    open.broker = broker;
    const governor = makeGovernor(broker);
    open.governor = governor;
    open.recovery = await startRecovery(governor, options.beatMs);
    await options.beforeServing?.(governor);
    await open.recovery.beginReplays();
    open.housekeeping = startHousekeeping(broker, {
      'expiring held calls': (now) => expireHeld(governor, now),
      'expiring access requests': (now) => expireRequests(broker, governor.changes, now),
      'expiring registrations': (now) => expireRegistrations(broker, governor.changes, now),
      'revoking agents whose keys nobody collected': (now) => revokeUncollected(governor, now),
    });
    open.local = writeRunFile(config, listener.localUrl, governor);
    listener.serve(makeApp(governor, servedRoutes()));
    log.debug({ baseUrl, store: open.store.dialect }, 'the broker is running');
    let stopping: Promise<void> | undefined;
    const stop = () => {
      stopping ??= close(open, GRACE_MS, log).then(() => log.info('the broker has stopped'));
      return stopping;
    };
    return { baseUrl, broker, governor, masterKeyCreated, stop };
  } catch (error) {
    await close(open, 0, log);
    throw error;
  }
}

/** First what takes new work, then what works, then what stores it. A step that fails does not keep the next from its turn. */
async function close(open: Open, graceMs: number, log: Log): Promise<void> {
  const step = async (what: string, work: () => Promise<void> | void | undefined) => {
    try {
      await work();
    } catch (error) {
      log.error({ err: error }, `${what} did not stop as it should`);
    }
  };
  const { store, listener, broker, governor, recovery, housekeeping, local } = open;
  await step('the run file', () => local?.remove());
  const cutOff = async () => {
    // With the way out closed, an approved call would come to its end without having been sent.
    governor?.replays.stop();
    await Promise.all([broker?.outbound, broker?.publicOutbound, broker?.providerOutbound].map((way) => way?.close()));
  };
  await step('waiting agents', () => governor?.changes.release());
  await step('the lab', () => governor?.lab.close());
  await step('the listener', () => listener?.close({ graceMs, ...(graceMs > 0 && { cutOff }) }));
  await step('replays', () => governor?.replays.settled(graceMs));
  await step('replays', () => governor?.replays.stop());
  await step('the way out', () => broker?.outbound.close());
  await step('the way to the internet', () => broker?.publicOutbound.close());
  await step('the way to the identity provider', () => broker?.providerOutbound?.close());
  await step('replays', () => governor?.replays.settled(SETTLE_MS));
  await step('the recorder', () => governor?.recorder.settled(SETTLE_MS));
  await step('housekeeping', () => housekeeping?.stop());
  await step('recovery', () => recovery?.stop());
  await step('the recorder', () => governor?.recorder.close());
  await step('news of held calls', () => governor?.changes.close());
  await step('the store', () => store.close());
}

/**
 * Leaves the listener's own address and the local credential for the command line on this machine: behind a proxy or a
 * balancer the public address may lead to another replica, which does not know this credential.
 */
function writeRunFile(config: Config, url: string, governor: Governor): { remove(): void } {
  const path = runFile(config.dataFolder);
  mkdirSync(join(config.dataFolder, 'run'), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  const content = { url, pid: process.pid, local_token: governor.local.token.reveal() };
  const text = `${JSON.stringify(content)}\n`;
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  return {
    remove: () => {
      // A replica that was started later on the same folder may have left its own.
      if (existsSync(path) && readFileSync(path, 'utf8') === text) rmSync(path);
    },
  };
}
