/** Starts everything that is measured: upstream, nginx, forwarder, PostgreSQL and brokers. */
import { present } from '../broker/runtime/present.ts';
import type { BrokerOptions, BrokerTarget } from './broker-target.ts';
import { type LoadGenerator, startLoadGenerator } from './generator.ts';
import type { Sample, Target } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Postgres, startPostgres } from './postgres.ts';
import { forkChild } from './process.ts';
import { authzenQuestion, governedRead, permissionsQuestion, plainRead, rawRead, trqpQuestion } from './requests.ts';
import { createTokenBatch } from './tokens.ts';

export type Store = BrokerOptions['store'];
export type StartBroker = (options: BrokerOptions) => Promise<BrokerTarget | undefined>;

/** A broker under load: its targets by kind of request, and the count of its governed calls. */
export type BrokerOnStage = {
  broker: BrokerTarget;
  store: Store;
  /** The processes of the broker and its database. */
  pids: readonly number[];
  governed: Target;
  /** The same read through `/proxy`. */
  raw: Target;
  decisions: Target;
  /** AuthZEN is requested by the agents themselves, TRQP without authentication. */
  authzen: Target;
  trqp: Target;
  /** Adds a run's answers to the count of calls that must be in the audit. */
  charge(samples: readonly Sample[]): void;
  charged(): { sent: number; answered: number };
};

export type Stage = {
  generator: LoadGenerator;
  upstream: Target;
  forwarder: Target;
  nginx: Target | undefined;
  versions: { nginx: string | undefined; postgres: string | undefined };
  /** Returns undefined when this store, or the broker, is unavailable. */
  startBroker(store: Store, agents: number, callers?: number): Promise<BrokerOnStage | undefined>;
  /** Starts a broker for transfers of files and events, with an agent for each; undefined when the store is unavailable. */
  startStreams(store: Store, agents: number): Promise<BrokerTarget | undefined>;
  /** Starts a broker and nginx in front of one code host; undefined when one of them, or the store, is unavailable. */
  startGit(store: Store): Promise<{ broker: BrokerTarget; nginx: string; stop(): Promise<void> } | undefined>;
};

export const NAMES = { upstream: 'upstream itself', nginx: 'nginx', forwarder: 'bare Express forwarder' };

/** A text of the length of an agent token, so that the forwarder reads as many bytes as the broker. */
const TOKEN_SIZED_TEXT = 'x'.repeat(620);
const TOKENS_PER_BATCH = 1_000;

/** Starts everything except the brokers. `stack` stops all that was started. */
export async function setStage(
  stack: AsyncDisposableStack,
  startBroker: StartBroker,
  stores: readonly Store[],
): Promise<Stage> {
  const keep = <T extends { stop(): Promise<void> } | undefined>(started: T): T => {
    if (started) stack.defer(() => started.stop());
    return started;
  };
  const upstream = keep(await forkChild('upstream.ts', {}));
  const upstreamPort = (upstream.said as { port: number }).port;
  const upstreamUrl = `http://127.0.0.1:${upstreamPort}`;
  const forwarder = keep(await forkChild('forwarder.ts', { BENCH_UPSTREAM: upstreamUrl }));
  const nginx = keep(await startNginx(`127.0.0.1:${upstreamPort}`));
  const postgres = stores.includes('postgres') ? keep(await startPostgres()) : undefined;
  const generator = await startLoadGenerator();
  keep(generator.child);
  const plain = [plainRead()];
  const forwarded = [governedRead(TOKEN_SIZED_TEXT)];
  let databases = 0;

  return {
    generator,
    upstream: { name: NAMES.upstream, port: upstreamPort, pids: [upstream.pid], requests: () => plain },
    forwarder: {
      name: NAMES.forwarder,
      port: (forwarder.said as { port: number }).port,
      pids: [forwarder.pid],
      requests: () => forwarded,
    },
    nginx: nginx && { name: NAMES.nginx, port: nginx.port, pids: [nginx.pid], requests: () => plain },
    versions: { nginx: nginx?.version, postgres: postgres?.version },
    async startBroker(store, agents, callers) {
      const options = await storeOptions(store, postgres, () => `bench_${++databases}`);
      const broker =
        options &&
        keep(await startBroker({ ...options, agents, upstreamUrl, ...(callers !== undefined && { callers }) }));
      return broker && onStage(broker, store, agents, store === 'postgres' && postgres ? [postgres.pid] : []);
    },
    async startStreams(store, agents) {
      const options = await storeOptions(store, postgres, () => `bench_${++databases}`);
      return options && keep(await startBroker({ ...options, agents, upstreamUrl, streams: true }));
    },
    async startGit(store) {
      const options = await storeOptions(store, postgres, () => `bench_${++databases}`);
      if (!options || !nginx) return undefined;
      const host = keep(await forkChild('git-upstream.ts', {}));
      const { port } = host.said as { port: number };
      const proxy = keep(present(await startNginx(`127.0.0.1:${port}`), 'nginx'));
      const gitUrl = `http://127.0.0.1:${port}`;
      const broker = keep(
        present(await startBroker({ ...options, agents: GIT_AGENTS, upstreamUrl, gitUrl }), 'broker'),
      );
      const stop = async () => {
        for (const one of [broker, proxy, host]) await one.stop();
      };
      return { broker, nginx: `http://127.0.0.1:${proxy.port}`, stop };
    },
  };
}

/** More than enough agents for CLONES concurrent clones, with 16 concurrent calls per agent. */
const GIT_AGENTS = 100;

async function storeOptions(store: Store, postgres: Postgres | undefined, name: () => string) {
  if (store === 'sqlite') return { store } as const;
  return postgres && ({ store, databaseUrl: await postgres.createDatabase(name()) } as const);
}

function onStage(broker: BrokerTarget, store: Store, agents: number, database: readonly number[]): BrokerOnStage {
  const batch = createTokenBatch(broker.agents, TOKENS_PER_BATCH, Date.now);
  const port = Number(new URL(broker.baseUrl).port);
  const pids = [broker.pid, ...database];
  const count = agents.toLocaleString('en');
  const calls = { sent: 0, answered: 0 };
  const registry = broker.agents.map(({ agentId }) => trqpQuestion(agentId, port));
  return {
    broker,
    store,
    pids,
    governed: { name: `governed read, ${store}, ${count} agents`, port, pids, requests: remade(governedRead) },
    raw: { name: `raw read, ${store}, ${count} agents`, port, pids, requests: remade(rawRead) },
    decisions: { name: `permissions, ${store}, ${count} agents`, port, pids, requests: remade(permissionsQuestion) },
    authzen: { name: `AuthZEN, ${store}, ${count} agents`, port, pids, requests: remade(authzenQuestion) },
    trqp: { name: `TRQP, ${store}, ${count} agents`, port, pids, requests: () => registry },
    charge(samples) {
      for (const { sent, answered } of samples) {
        calls.sent += sent;
        calls.answered += answered;
      }
    },
    charged: () => ({ ...calls }),
  };

  function remade(make: (token: string, agentId: string) => Buffer): () => readonly Buffer[] {
    let of: readonly string[] | undefined;
    let made: Buffer[] = [];
    return () => {
      const tokens = batch.fresh();
      if (tokens !== of)
        made = tokens.map((token, at) =>
          make(token, present(broker.agents[at % broker.agents.length], 'agent').agentId),
        );
      of = tokens;
      return made;
    };
  }
}
