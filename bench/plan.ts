/** The phases of a run, their lengths, and their findings. */

import { setTimeout as wait } from 'node:timers/promises';
import { present } from '../broker/runtime/present.ts';
import { type AnswerCost, measureAnswers, measureStreams } from './answers.ts';
import { type GitFindings, type PushFindings, watchGit, watchPushes } from './git.ts';
import { type McpFindings, watchMcp } from './mcp.ts';
import { type Load, type Meter, measure, measureInRounds, type Sample, type Target, warmUp } from './measure.ts';
import { residentBytes } from './process.ts';
import { STREAMS, type StreamFindings, watchStreams } from './raw-streams.ts';
import { recordPush } from './record-push.ts';
import { type SidecarFindings, watchSidecar } from './sidecar.ts';
import type { BrokerOnStage, Stage, Store } from './stage.ts';
import { type WaitingFindings, watchWaiting } from './waiting.ts';

export type Plan = {
  stores: readonly Store[];
  rounds: number;
  measureMs: number;
  /**
   * Warm-up calls of each target, in 20 s at most. A long-running broker is compiled after its first minute:
   * it becomes 50 % faster in its first 60,000 calls, and another 10 % in the next 200,000.
   */
  warmUpCalls: number;
  /** Governed calls of the memory phase, on each store. */
  calls: number;
  /** The number of stored agents of the main broker; `scales`: those of the brokers that the cost per call is compared on. */
  agents: number;
  /** Agents that wait for a decision at the same time. */
  waiting: number;
  scales: readonly number[];
  /** How long many streams are open at the same time. */
  streamSeconds: number;
};

/** The findings for the broker of one store. */
export type BrokerFindings = {
  healthAfterMs: number;
  /** Resident bytes before its first call. */
  atRest: number;
  memory: { calls: number; bytes: number }[];
  scale: { agents: number; samples: Sample[] }[];
  waiting: WaitingFindings | undefined;
  /** Measured on one store only, since the cost hardly depends on the store. */
  mcp: McpFindings | undefined;
  sidecar: SidecarFindings | undefined;
  rawStreams: StreamFindings | undefined;
  /** Streams are measured on one store only, since their cost hardly depends on the store. */
  git: { streams: GitFindings | undefined; pushes: PushFindings | undefined } | undefined;
  audit: { sent: number; answered: number; rows: number; verified: number; failed: number };
};

export type Findings = {
  /** The number of answers other than 200 in all runs, by target and status or error. */
  wrong: Map<string, number>;
  /** By target name. */
  many: Map<string, Sample[]>;
  one: Map<string, Sample[]>;
  /** The cost of the search for the credential, measured without a broker. */
  answers: AnswerCost[];
  streams: AnswerCost[];
  brokers: Map<
    Store,
    { governed: string; raw: string; decisions: string; authzen: string; trqp: string } & BrokerFindings
  >;
};

export const CONNECTIONS = 32;
const WARMUP_MS = 500;
const MEMORY_STEPS = 10;
const MCP_AGENTS = 10;

/** Runs every phase on the stage. `tell` receives progress lines. */
export async function runPlan(stage: Stage, plan: Plan, tell: (text: string) => void): Promise<Findings> {
  const meter: Meter = { generator: stage.generator, tell, wrong: new Map() };
  const mains: BrokerOnStage[] = [];
  const brokers: Findings['brokers'] = new Map();
  for (const store of plan.stores) {
    tell(`starting a broker on ${store} with ${plan.agents} agents`);
    const main = await stage.startBroker(store, plan.agents);
    if (!main) continue;
    await wait(1_000);
    const { broker, governed, raw, decisions, authzen, trqp } = main;
    const audit = { sent: 0, answered: 0, rows: -(await broker.auditCount()), verified: 0, failed: 0 };
    const atRest = residentBytes([broker.pid]);
    const found = {
      healthAfterMs: broker.healthAfterMs,
      atRest,
      memory: [],
      scale: [],
      waiting: undefined,
      mcp: undefined,
      sidecar: undefined,
      rawStreams: undefined,
      git: undefined,
      audit,
    };
    const names = {
      governed: governed.name,
      raw: raw.name,
      decisions: decisions.name,
      authzen: authzen.name,
      trqp: trqp.name,
    };
    brokers.set(store, { ...names, ...found });
    mains.push(main);
  }

  tell('looking for a credential in answers');
  const answers = measureAnswers();
  const streams = measureStreams();
  const { upstream, nginx, forwarder } = stage;
  const plain: Target[] = [upstream, ...(nginx ? [nginx] : []), forwarder];
  const governed = mains.flatMap((main) => [main.governed, main.raw]);
  const decisions = mains.flatMap((main) => [main.decisions, main.authzen, main.trqp]);
  const load: Load = { connections: CONNECTIONS, warmupMs: WARMUP_MS, measureMs: plan.measureMs };
  const lone: Load = { ...load, connections: 1, measureMs: plan.measureMs * 0.6 };
  const warm = await warmUp(meter, [...plain, ...governed, ...decisions], plan.warmUpCalls);
  const many = await measureInRounds(meter, [...plain, ...governed, ...decisions], load, plan.rounds);
  const one = await measureInRounds(meter, [...plain, ...governed], lone, plan.rounds);

  for (const main of mains) {
    const found = present(brokers.get(main.store), 'broker');
    for (const samples of [warm, many, one])
      for (const name of [found.governed, found.raw]) main.charge(present(samples.get(name), 'samples'));
    found.memory = await watchMemory(meter, main, plan.calls);
    found.scale = await compareScales(meter, stage, main, plan, load);
    found.waiting = await letWait(stage, main.store, plan.waiting, tell);
    if (main === mains[0]) Object.assign(found, await meetAgents(stage, main.store, tell));
    if (main === mains[0]) found.rawStreams = await meetStreams(stage, main.store, plan, tell);
    found.git = await meetGit(stage, main.store, { streams: main === mains[0], rounds: plan.rounds }, tell);
    tell(`verifying the receipts on ${main.store}`);
    const { rows } = found.audit;
    const receipts = await main.broker.verifyReceipts();
    found.audit = { ...main.charged(), rows: rows + (await main.broker.auditCount()), ...receipts };
  }
  return { many, one, answers, streams, brokers, wrong: meter.wrong };
}

/** Returns the resident memory over many calls: one reading before, and one after each tenth. */
async function watchMemory(meter: Meter, main: BrokerOnStage, calls: number) {
  const readings = [{ calls: 0, bytes: residentBytes([main.broker.pid]) }];
  const load = {
    connections: CONNECTIONS,
    warmupMs: 0,
    measureMs: 120_000,
    mostCalls: Math.ceil(calls / MEMORY_STEPS),
  };
  for (let step = 1; step <= MEMORY_STEPS; step++) {
    const sample = await measure(meter, main.governed, load);
    main.charge([sample]);
    const calls = (readings.at(-1)?.calls ?? 0) + sample.answered;
    const bytes = residentBytes([main.broker.pid]);
    readings.push({ calls, bytes });
    meter.tell(`${main.store}: ${calls} calls, ${Math.round(bytes / 1e6)} MB`);
  }
  return readings;
}

/** Measures the programs that agents use, on a broker of their own, so that their calls do not count in the audit of the main one. */
async function meetAgents(stage: Stage, store: Store, tell: (text: string) => void) {
  const on = await stage.startBroker(store, MCP_AGENTS);
  if (!on) return undefined;
  try {
    return { mcp: await watchMcp(on.broker, tell), sidecar: await watchSidecar(on.broker, tell) };
  } finally {
    await on.broker.stop();
  }
}

/** Measures streams on a broker of their own, with an agent for each stream. */
async function meetStreams(stage: Stage, store: Store, plan: Plan, tell: (text: string) => void) {
  const broker = await stage.startStreams(store, STREAMS);
  if (!broker) return undefined;
  try {
    return await watchStreams(broker, { rounds: plan.rounds, seconds: plan.streamSeconds }, tell);
  } finally {
    await broker.stop();
  }
}

/** Measures git on a broker and a code host of its own. */
async function meetGit(
  stage: Stage,
  store: Store,
  { streams, rounds }: { streams: boolean; rounds: number },
  tell: (text: string) => void,
) {
  tell(`starting a broker on ${store} before a code host`);
  const on = await stage.startGit(store);
  if (!on) return undefined;
  try {
    const nginx = { base: on.nginx, authorization: () => undefined };
    const body = await recordPush();
    return {
      streams: streams ? await watchGit(on.broker, nginx, rounds, tell) : undefined,
      pushes: body && (await watchPushes(on.broker, body, tell)),
    };
  } finally {
    await on.stop();
  }
}

/** Measures waiting agents on a broker of their own, so that its memory holds nothing else. */
async function letWait(stage: Stage, store: Store, agents: number, tell: (text: string) => void) {
  tell(`starting a broker on ${store} with ${agents} agents, who will wait`);
  const on = await stage.startBroker(store, agents, agents);
  if (!on) return undefined;
  try {
    return await watchWaiting(on.broker, on.pids, tell);
  } finally {
    await on.broker.stop();
  }
}

/** Measures the same load on brokers with few and with many stored agents, in turn; the main broker is one of them. */
async function compareScales(meter: Meter, stage: Stage, main: BrokerOnStage, plan: Plan, load: Load) {
  const others = plan.scales.filter((agents) => agents !== plan.agents);
  const started: { agents: number; on: BrokerOnStage }[] = [{ agents: plan.agents, on: main }];
  for (const agents of others) {
    meter.tell(`starting a broker on ${main.store} with ${agents} agents`);
    const on = await stage.startBroker(main.store, agents);
    if (on) started.push({ agents, on });
  }
  started.sort((a, b) => a.agents - b.agents);
  const targets = started.map(({ on }) => on.governed);
  const warm = await warmUp(meter, targets, plan.warmUpCalls);
  const samples = await measureInRounds(meter, targets, load, Math.min(plan.rounds, 3));
  for (const runs of [warm, samples]) main.charge(present(runs.get(main.governed.name), 'samples'));
  for (const { on } of started) if (on !== main) await on.broker.stop();
  return started.map(({ agents, on }) => ({ agents, samples: present(samples.get(on.governed.name), 'samples') }));
}
