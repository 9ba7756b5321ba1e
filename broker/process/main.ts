/** Starts and stops the broker process. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { countActivity } from '../admin/activity/count-activity.ts';
import { revokeUncollected } from '../admin/agents/revoke-uncollected.ts';
import { revokeUndecidedTokens } from '../admin/connections/revoke-undecided-tokens.ts';
import { expireRegistrations } from '../admin/registrations/registration.ts';
import { noteRestored } from '../admin/restored.ts';
import { expireRequests } from '../approvals/access-requests.ts';
import { expireHeld } from '../approvals/expiry.ts';
import { keepAuditPartitions } from '../audit/keep-partitions.ts';
import { startRecovery } from '../audit/recovery.ts';
import { startPusher } from '../audit-push/pusher.ts';
import { type Broker, proxyUrlOf } from '../broker.ts';
import { startAccessWatch } from '../calls/access-watch.ts';
import type { Config } from '../environment/config.ts';
import { makeApp } from '../http/app.ts';
import { makeLog } from '../log/log.ts';
import { startSender } from '../notify/sender.ts';
import { announceLogKey } from '../receipt-log/announce-key.ts';
import { purgeJob } from '../receipt-log/purge.ts';
import { startSequencer } from '../receipt-log/sequencer.ts';
import { makeWitnesses } from '../receipt-log/witnesses.ts';
import { pause } from '../runtime/waits.ts';
import { makeServices, type Services } from '../services.ts';
import { makeAuditPartitions } from '../store/audit-partitions.ts';
import { givenClock, startStoreClock } from '../store-clock.ts';
import { close, type Open } from './close.ts';
import { addGauges } from './gauges.ts';
import { generationJob } from './generation.ts';
import { startHousekeeping } from './housekeeping.ts';
import { openListener, ownAddresses } from './listener.ts';
import { runFile } from './run-file.ts';
import { servedRoutes } from './served-routes.ts';
import { openStore, startBroker } from './start.ts';
import { startFault } from './start-fault.ts';

export type Running = {
  baseUrl: string;
  broker: Broker;
  services: Services;
  masterKeyCreated: boolean;
  /**
   * Reports for `drainMs` that it stops, while it still serves; then finishes requests in flight (10 s at most) and closes the
   * store. Safe to call twice.
   */
  stop(): Promise<void>;
};

export type ServeOptions = {
  /** The time to use instead of the store's. */
  clock?: () => number;
  /** SQLite: trust this machine's time, although it is behind the newest heartbeat. */
  acceptClock?: boolean;
  /** Origins (`host:port`) of the broker's own test platforms on loopback: the sandbox. */
  allowPrivate?: readonly string[];
  /** Runs when everything is started and before the first request is served. */
  beforeServing?: (services: Services) => Promise<void>;
  /** Interval of the heartbeat, and of the check for replicas whose heartbeat stopped, in milliseconds. */
  beatMs?: number;
  /** Interval of background jobs, in milliseconds. */
  choresMs?: number;
  /** How long calls are still accepted after a stop was requested, in milliseconds, so that load balancers notice it. */
  drainMs?: number;
  /** The folder of the console's bundle, where it is not the build's own. */
  consoleBundle?: string;
  /** Aborted when the process is to stop. A start then ends after its current step, and throws the reason. */
  interrupt?: AbortSignal;
};

const GRACE_MS = 10_000;

/** Starts the broker. When the start fails, closes everything and throws. */
export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const log = makeLog(config.logLevel);
  const step = async (): Promise<void> => {
    // SQLite answers synchronously, and signals are only handled between turns of the event loop.
    await turn();
    options.interrupt?.throwIfAborted();
  };
  await step();
  const open: Open = {
    store: await openStore(config, log).catch((error) => {
      throw startFault(error, config);
    }),
  };
  try {
    await step();
    const clock = options.clock
      ? givenClock(options.clock)
      : await startStoreClock(open.store, { log, accept: options.acceptClock ?? false });
    // The port is bound before a key or an address that contains it is created; early requests wait for the rest of the start.
    const listener = await openListener(config, log);
    open.listener = listener;
    await step();
    const baseUrl = config.baseUrl ?? `http://localhost:${listener.port}`;
    const { broker, masterKeyCreated } = await startBroker(open.store, {
      config,
      log,
      clock,
      baseUrl,
      own: ownAddresses([baseUrl, proxyUrlOf(baseUrl, config.proxyHost)], config.host, listener.port),
      ...(options.allowPrivate && { allowPrivate: options.allowPrivate }),
    });
    open.broker = broker;
    await step();
    await makeAuditPartitions(open.store, broker.clock());
    const services = makeServices(broker, options.beatMs);
    open.services = services;
    open.unwatch = addGauges(services, listener);
    open.recovery = await startRecovery(services);
    await step();
    await noteRestored(services);
    await options.beforeServing?.(services);
    await step();
    await open.recovery.beginReplays();
    await step();
    const more = {
      'counting activity for plots': (now: number) => countActivity(broker, now),
      'expiring held calls': (now: number) => expireHeld(services, now),
      'expiring access requests': (now: number) => expireRequests(broker, services.changes, now),
      'expiring registrations': (now: number) => expireRegistrations(broker, services.changes, now),
      'revoking agents whose keys nobody collected': (now: number) => revokeUncollected(services, now),
      'writing when tokens of people were used last': () => services.tokenUses.write(),
      'remembering how far the store is': generationJob(broker),
      'deleting audit rows that are kept no longer': purgeJob(services),
      'keeping the partitions of the audit': (now: number) => keepAuditPartitions(broker, now),
      'writing when static keys were used last': () => services.staticKeyUses.write(),
      'writing when workloads were used last': () => services.workloadUses.write(),
      'writing what agents did': () => services.seenValues.write(),
      // Run last: they wait for platforms.
      'revoking tokens that nobody kept': (now: number) => revokeUndecidedTokens(services, now),
      'repeating revocations of tokens': (now: number) => services.oauth.retryRevocations(now),
    };
    open.housekeeping = startHousekeeping(broker, more, options.choresMs);
    open.accessWatch = startAccessWatch(services);
    open.sender = startSender(broker, services.changes);
    open.sequencer = startSequencer(broker, services.logHeads, makeWitnesses(broker), (...key) =>
      announceLogKey(services, ...key),
    );
    open.pusher = startPusher(broker);
    open.local = writeRunFile(config, listener.localUrl, services);
    listener.serve(makeApp(services, servedRoutes(options.consoleBundle)));
    broker.rateCounts.begin();
    log.debug({ baseUrl, store: open.store.dialect }, 'the broker is running');
    let stopping: Promise<void> | undefined;
    const stop = () => {
      stopping ??= drain(open, options.drainMs ?? 0)
        .then(() => close(open, GRACE_MS, log))
        .then(() => log.info('the broker has stopped'));
      return stopping;
    };
    return { baseUrl, broker, services, masterKeyCreated, stop };
  } catch (error) {
    await close(open, 0, log);
    throw startFault(error, config);
  }
}

/** Serves as before, but reports that it stops: load balancers need a while to notice. */
async function drain({ services, listener }: Open, drainMs: number): Promise<void> {
  services?.readiness.drain();
  listener?.drain();
  if (drainMs > 0) await pause(drainMs);
}

/**
 * Writes the listener's own address and the local credential for the command line on this machine: behind a proxy or a
 * load balancer the public address may lead to another replica, which does not accept this credential.
 */
function writeRunFile(config: Config, url: string, services: Services): { remove(): void } {
  const path = runFile(config.dataFolder);
  mkdirSync(join(config.dataFolder, 'run'), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  const content = { url, pid: process.pid, local_token: services.local.token.reveal() };
  const text = `${JSON.stringify(content)}\n`;
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  return {
    remove: () => {
      // A replica that was started later on the same folder may have written its own file.
      if (existsSync(path) && readFileSync(path, 'utf8') === text) rmSync(path);
    },
  };
}
