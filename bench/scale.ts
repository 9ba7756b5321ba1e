/** `npm run bench -- scale`: costs that grow with agents and audit rows on PostgreSQL, and four replicas of which one is killed. */

import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '../broker/environment/config.ts';
import { present } from '../broker/runtime/present.ts';
import { dropEmptyAuditPartitions, listAuditPartitions } from '../broker/store/audit-partitions.ts';
import { deleteRowsOf } from '../broker/store/audit-purges.ts';
import { openPostgres } from '../broker/store/postgres/postgres.ts';
import { wholeNumber } from './bench-options.ts';
import { ownerTokenOf, serveBroker } from './broker-target.ts';
import { cleanupStack, keeper } from './cleanup.ts';
import { freePort } from './free-port.ts';
import { startLoadGenerator } from './generator.ts';
import { type Load, type Meter, measure, median, quantile, type Target } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Postgres, startPostgres } from './postgres.ts';
import { cpuSeconds, forkChild, residentBytes, stopper } from './process.ts';
import { governedRead, permissionsQuestion } from './requests.ts';
import { connect, type Database, makeAgents, makePastMonths, makeRows, SPAN_MS, sizeOfAudit } from './scale-data.ts';
import { seed } from './seed.ts';
import { type BenchAgent, createTokenBatch, makeAgentKeys } from './tokens.ts';

export const SCALE_USAGE = `Usage: npm run bench -- scale [--agents N] [--rows N] [--seconds N]

  --agents N       agents, half of them in one organisation (100000)
  --rows N         audit rows of 24 months, half of them of that organisation; measured at 5 %, 25 % and all of them (1000000).
                   20 million take 30 GB of disk and half an hour
  --seconds N      length of a run of governed reads (5)
`;

export type ScaleOptions = { agents: number; rows: number; seconds: number };

/** Parses the command line. Throws an Error with a message for the user. */
export function readScaleOptions(args: readonly string[]): ScaleOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...args], options: { agents: text, rows: text, seconds: text } });
  return {
    agents: wholeNumber('--agents', values.agents, 100_000, 10_000_000),
    rows: wholeNumber('--rows', values.rows, 1_000_000, 1_000_000_000),
    seconds: wholeNumber('--seconds', values.seconds, 5, 600),
  };
}

/** Usual settings for a server of this size; PostgreSQL's defaults are for much smaller machines. Commits still wait for the disk. */
const SETTINGS = ['--shared_buffers=2GB', '--max_wal_size=8GB', '--maintenance_work_mem=256MB'];
const CALLERS = 1_000;
const STEPS = [0.05, 0.25, 1];
const ASKED = 20;
const REPLICAS = 4;
/** Measured per second; one replica is killed 300 ms after the start of the third. */
const KILL_SECONDS = 10;
/** Added to the time of a purge: the measured brokers have checked for empty partitions, too, and a check is skipped within an hour of the last. */
const LATER_MS = 24 * 3_600_000;
const MONTH_MS = 30 * 24 * 3600 * 1000;

type Settings = Record<string, string>;
type Scene = {
  postgres: Postgres;
  database: Database;
  settings: Settings;
  callers: BenchAgent[];
  meter: Meter;
  agents: number;
  now: number;
};

const tell = (line: string) => void process.stdout.write(`${line}\n`);
const ms = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const seconds = (from: number) => (performance.now() - from) / 1_000;
const count = (value: number) => value.toLocaleString('en');

/** Runs the bench on a PostgreSQL of its own and prints the results. Returns the exit code: 1 when a run had errors. */
export async function benchScale({ agents, rows, seconds: length }: ScaleOptions): Promise<number> {
  await using stack = cleanupStack();
  const scene = await makeScene(stack, agents);
  for (const [at, share] of STEPS.entries()) {
    const [from, to] = [Math.round(rows * (STEPS[at - 1] ?? 0)), Math.round(rows * share)];
    const began = performance.now();
    await makeRows(scene.database.url, { agents, from, to, until: scene.now });
    const took = seconds(began);
    tell(`\n${count(to)} rows (${count(Math.round((to - from) / took))} a second made)`);
    await scene.database.ask('vacuum analyze audit_rows');
    await describeSize(scene, to);
    await measureBroker(scene, length);
  }
  await measurePurge(scene);
  await killOne(stack, scene);
  for (const [what, times] of scene.meter.wrong) tell(`Wrong: ${what}, ${times} times`);
  return scene.meter.wrong.size > 0 ? 1 : 0;
}

async function makeScene(stack: AsyncDisposableStack, agents: number): Promise<Scene> {
  const keep = keeper(stack);
  const postgres = keep(present(await startPostgres({ settings: SETTINGS }), 'PostgreSQL'));
  const upstream = keep(await forkChild('upstream.ts', {}));
  const upstreamUrl = `http://127.0.0.1:${(upstream.said as { port: number }).port}`;
  const generator = await startLoadGenerator();
  keep(generator.child);
  const url = await postgres.createDatabase('scale');
  const keys = await makeAgentKeys(1);
  const dataFolder = temporaryFolder(stack);
  const settings = {
    LOG_LEVEL: 'error',
    AGENT_BROKER_DATA: dataFolder,
    AGENT_BROKER_LIMIT_FACTOR: '1000000',
    AGENT_BROKER_ALLOW_PRIVATE: new URL(upstreamUrl).host,
    DATABASE_URL: url,
  };
  const nothingElse = { gitUrl: undefined, peopleUrl: undefined, streams: false };
  const [first] = await seed(readConfig(settings), { agents: 1, callers: 1, upstreamUrl, keys, ...nothingElse });
  const database = await connect(url);
  stack.defer(() => database.end());
  const meter: Meter = { generator, tell: () => {}, wrong: new Map() };
  const now = Date.now();
  const scene: Scene = { postgres, database, settings, callers: [present(first, 'agent')], meter, agents, now };
  tell(`PostgreSQL ${postgres.version}, ${SETTINGS.join(' ')}`);
  await makePastMonths(database, now);
  // All generated data are copies of one agent and of the audit row of one real call.
  const broker = await serve(scene);
  await measure(meter, targetOf(scene, broker.port, [broker.pid], 'first', governedRead), { ...ONE, mostCalls: 1 });
  await broker.stop();
  const began = performance.now();
  await makeAgents(database, agents);
  tell(`${count(agents)} agents made in ${Math.round(seconds(began))} s`);
  const { privateKey } = scene.callers[0] as BenchAgent;
  const called = await database.ask(
    `select s.agent_id, a.owner_id from scale_agents s join agents a on a.organisation_id = s.organisation_id and a.id = s.id
     where s.of = 0 order by md5(s.id) limit ${CALLERS}`,
  );
  scene.callers = called.map(({ agent_id, owner_id }) => ({
    agentId: String(agent_id),
    ownerId: String(owner_id),
    privateKey,
  }));
  return scene;
}

function temporaryFolder(stack: AsyncDisposableStack): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-scale-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a broker on the store as it is. */
async function serve({ settings }: Scene, more: Settings = {}) {
  const port = await freePort();
  const all = { ...settings, PORT: String(port), ...more };
  const { child, healthAfterMs } = await serveBroker(all, `http://127.0.0.1:${port}`);
  return { port, pid: present(child.pid, 'process'), child, healthAfterMs, stop: stopper(child) };
}

const ONE: Load = { connections: 1, warmupMs: 0, measureMs: 10_000 };

function targetOf(
  { callers }: Scene,
  port: number,
  pids: readonly number[],
  name: string,
  request: (token: string) => Buffer,
): Target {
  const batch = createTokenBatch(callers, callers.length, Date.now);
  return { name, port, pids, requests: () => batch.fresh().map((token) => request(token)) };
}

async function describeSize({ database }: Scene, rows: number): Promise<void> {
  const { table, indexes } = await sizeOfAudit(database);
  const all = table + Object.values(indexes).reduce((sum, one) => sum + one, 0);
  const each = Object.entries(indexes).map(([name, bytes]) => `${name} ${Math.round(bytes / rows)}`);
  tell(
    `  size: ${(all / 1e9).toFixed(1)} GB, bytes a row: ${Math.round(all / rows)} (the row ${Math.round(table / rows)}, ${each.join(', ')})`,
  );
}

/** Measures a broker on the present data: its start, requests of agents, and pages of owners. */
async function measureBroker(scene: Scene, length: number): Promise<void> {
  const { meter, postgres } = scene;
  const starts: [took: number, cpu: number][] = [];
  for (let round = 0; round < 3; round++) {
    const started = await serve(scene);
    starts.push([started.healthAfterMs, cpuSeconds([started.pid]) * 1_000]);
    await started.stop();
  }
  tell(`  start: ${starts.map(([took, cpu]) => `${ms(took)} (${ms(cpu)} of CPU)`).join(', ')}`);
  const broker = await serve(scene);
  try {
    const pids = [broker.pid, postgres.pid];
    const governed = targetOf(scene, broker.port, pids, 'governed read', governedRead);
    const permissions = targetOf(scene, broker.port, pids, 'permissions', permissionsQuestion);
    // Warm-up, until the code is compiled.
    await measure(meter, governed, { connections: 32, warmupMs: 0, measureMs: 30_000, mostCalls: 15_000 });
    for (const target of [governed, permissions])
      for (const connections of [1, 32]) {
        const load = { connections, warmupMs: 500, measureMs: length * 1_000 };
        const runs = [await measure(meter, target, load), await measure(meter, target, load)];
        const of = (figure: (run: (typeof runs)[number]) => number) => median(runs.map(figure));
        tell(
          `  ${target.name}, ${connections} connections: ${Math.round(of(({ rate }) => rate))}/s, p50 ${ms(of(({ latency }) => latency.p50))}, ` +
            `p99 ${ms(of(({ latency }) => latency.p99))}, ${Math.round(of(({ cpuMicros }) => cpuMicros))} µs of CPU; load ${loadavg()[0]?.toFixed(1)}`,
        );
      }
    tell(
      `  load ${loadavg()[0]?.toFixed(1)}; memory of the broker: ${Math.round(residentBytes([broker.pid]) / 1e6)} MB`,
    );
    await measurePages(scene, broker);
  } finally {
    await broker.stop();
  }
}

const idAt = (at: number): string => {
  const time = Math.trunc(at).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
};

/** The pages of owners, each requested ASKED times; `at` is a time within the 24 months of data. */
function pagesOf(
  { agents, now }: Scene,
  ids: { busy: string; rare: string; public: string },
): Record<string, (at: number) => string> {
  const audit = (query: string) => `/owner/audit?limit=50${query}`;
  const from = (at: number) => `&before=${idAt(at)}`;
  const moment = (at: number) => encodeURIComponent(new Date(at).toISOString());
  const month = (at: number) => `&since=${moment(at - MONTH_MS)}&until=${moment(at)}`;
  const list = (query: string) => `/owner/agents?limit=50${query}`;
  return {
    'activity, first page': () => audit(''),
    'activity, any page': (at) => audit(from(at)),
    'activity, last page': () => audit(from(now - SPAN_MS + 60_000)),
    'activity of 200 rows, any page': (at) => `/owner/audit?limit=200${from(at)}`,
    'activity of a busy agent': (at) => audit(`&agent=${ids.busy}${from(at)}`),
    'activity of a rare agent': () => audit(`&agent=${ids.rare}`),
    'activity of an agent by its agt_ id': (at) => audit(`&agent=${ids.public}${from(at)}`),
    'activity, errored': (at) => audit(`&result=errored${from(at)}`),
    'activity, a reason that is rare': (at) => audit(`&reason=upstream_timeout${from(at)}`),
    'activity, a reason that is nowhere': (at) => audit(`&reason=no_such_reason${from(at)}`),
    'activity, a text': (at) => audit(`&text=items%2F777${from(at)}`),
    'activity, a text that is nowhere': (at) => audit(`&text=no-such-text${from(at)}`),
    'activity, a month': (at) => audit(month(at)),
    'activity, held in a month': (at) => audit(`&result=held${month(at)}`),
    'agents, by name': () => list('&sort=name'),
    'agents, newest': () => list('&sort=-created'),
    'agents, a word': (at) => list(`&q=${Math.floor((at / 1000) % agents)}`),
    'one agent': () => `/owner/agents/${ids.busy}`,
    'the inbox': () => '/owner/approvals?status=pending',
    'the overview': () => '/owner/stats',
  };
}

async function measurePages(scene: Scene, { port, pid }: { port: number; pid: number }): Promise<void> {
  const pids = [pid, scene.postgres.pid];
  const { database, agents, now, settings } = scene;
  const name = async (number: number) =>
    present((await database.ask('select id, agent_id from scale_agents where number = $1', [number]))[0], 'agent');
  const busy = await name(2);
  const ids = {
    busy: String(busy.id),
    rare: String((await name(agents - (agents % 2))).id),
    public: String(busy.agent_id),
  };
  const token = await ownerTokenOf(present(settings.AGENT_BROKER_DATA, 'folder'));
  const ask = async (path: string) => {
    const began = performance.now();
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    const took = performance.now() - began;
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 200)}`);
    return took;
  };
  for (const [page, path] of Object.entries(pagesOf(scene, ids))) {
    const times: number[] = [];
    let failed = '';
    const before = cpuSeconds(pids);
    for (let round = 0; round < ASKED && failed === ''; round++) {
      // Pseudo-random times, the same at each size.
      const at = now - SPAN_MS * ((round * 0.618 + 0.05) % 1);
      await ask(path(at)).then(
        (took) => times.push(took),
        (error: Error) => {
          failed = error.message;
        },
      );
      if ((times.at(-1) ?? 0) > 5_000) break;
    }
    const said =
      times.length === 0
        ? failed
        : `${ms(((cpuSeconds(pids) - before) * 1_000) / times.length)} of CPU; quickest ${ms(Math.min(...times))}, p50 ${ms(median(times))}, p95 ${ms(quantile(times, 0.95))}`;
    tell(`  ${page}: ${said}${failed && times.length > 0 ? ` (then ${failed})` : ''}`);
  }
  tell(`  export: ${await exportRate(port, token)}`);
}

/** Returns the rows per second in the first five seconds of an export from the first row. */
async function exportRate(port: number, token: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/owner/audit/export`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const began = performance.now();
  let [lines, bytes] = [0, 0];
  for await (const piece of present(answer.body, 'body')) {
    bytes += piece.length;
    for (const byte of piece) if (byte === 10) lines++;
    if (seconds(began) > 5) break;
  }
  const took = seconds(began);
  return `${count(Math.round(lines / took))} rows/s, ${(bytes / took / 1e6).toFixed(1)} MB/s`;
}

/** Measures the purge of the oldest month: in batches as the background job deletes, the rest in one statement, vacuum, and dropping the partition. */
async function measurePurge({ database, now }: Scene): Promise<void> {
  const { ask, url } = database;
  const store = openPostgres(url, { connections: 4, onError: () => {} });
  try {
    const [first, second] = await listAuditPartitions(store.db);
    const [name, next] = [present(first, 'month').name, present(second, 'month').name];
    const rows = Number((await ask(`select count(*)::int as n from ${name}`))[0]?.n);
    const size = async () => Number((await ask(`select pg_total_relation_size('${name}')::float8 as n`))[0]?.n);
    tell(`\nPurge of a month of ${count(rows)} rows, ${((await size()) / 1e6).toFixed(0)} MB:`);
    const ids = await ask(`select organisation_id, id from ${name}
      where organisation_id = (select id from scale_organisations where number = 0) order by id limit 51200`);
    let began = performance.now();
    for (let at = 0; at < ids.length; at += 512) {
      const step = ids.slice(at, at + 512);
      await deleteRowsOf(
        store.db,
        String(step[0]?.organisation_id),
        step.map(({ id }) => String(id)),
      );
    }
    tell(`  in steps of 512: ${count(Math.round(ids.length / seconds(began)))} rows/s`);
    began = performance.now();
    await ask(`delete from ${name}`);
    tell(`  the rest at once: ${seconds(began).toFixed(1)} s`);
    began = performance.now();
    await ask(`vacuum (index_cleanup on, truncate off) ${name}`);
    tell(`  vacuum: ${seconds(began).toFixed(1)} s, and ${((await size()) / 1e6).toFixed(0)} MB are still taken`);
    began = performance.now();
    const dropped = await dropEmptyAuditPartitions(store, { now: now + LATER_MS, holder: 'bench' });
    tell(`  dropping it: ${ms(seconds(began) * 1_000)} (${dropped.join(', ')})`);
    // A purged month keeps its events that record what was deleted.
    await ask(
      `update ${next} set kind = 'event', reason = 'audit_purged' where id in (select id from ${next} limit 20000)`,
    );
    await ask(`delete from ${next} where reason <> 'audit_purged'`);
    await ask(`vacuum (truncate off) ${next}`);
    began = performance.now();
    const other = await dropEmptyAuditPartitions(store, { now: now + 2 * LATER_MS, holder: 'bench' });
    tell(`  dropping one with 20,000 events that stay: ${ms(seconds(began) * 1_000)} (${other.join(', ')})`);
  } finally {
    await store.close();
  }
}

/** Measures four brokers behind nginx under load, of which one is killed. */
async function killOne(stack: AsyncDisposableStack, scene: Scene): Promise<void> {
  const { meter } = scene;
  const keyFile = join(present(scene.settings.AGENT_BROKER_DATA, 'folder'), 'keys', 'master.key');
  const brokers = [];
  for (let at = 0; at < REPLICAS; at++) {
    const own = { AGENT_BROKER_DATA: temporaryFolder(stack), AGENT_BROKER_KEY_FILE: keyFile };
    const broker = await serve(scene, { ...own, BASE_URL: 'http://127.0.0.1:8787' });
    stack.defer(broker.stop);
    brokers.push(broker);
  }
  const nginx = await startNginx(...brokers.map(({ port }) => `127.0.0.1:${port}`));
  if (!nginx) return tell('nginx is not installed: replicas were not measured.');
  stack.defer(() => nginx.stop());
  const target = targetOf(
    scene,
    nginx.port,
    brokers.map(({ pid }) => pid),
    'behind nginx',
    governedRead,
  );
  const load = { connections: 32, warmupMs: 0, measureMs: 10_000 };
  await measure(meter, target, load);
  tell(`\n${REPLICAS} replicas behind nginx, 32 connections, one killed (SIGKILL) in the third second:`);
  const killed = present(brokers[1], 'broker');
  // Failures are the measurement here, so they are counted apart from errors of the run.
  const counted: Meter = { ...meter, wrong: new Map() };
  const [sum, failed] = [[], new Map<string, number>()] as [number[], Map<string, number>];
  for (let second = 1; second <= KILL_SECONDS; second++) {
    const timer = second === 3 ? setTimeout(() => killed.child.kill('SIGKILL'), 300) : undefined;
    const { answered, latency, statuses, errors } = await measure(counted, target, { ...load, measureMs: 1_000 });
    clearTimeout(timer);
    const wrong = Object.entries({ ...statuses, ...errors }).filter(([what]) => what !== '200');
    for (const [what, times] of wrong) failed.set(what, (failed.get(what) ?? 0) + times);
    sum.push(answered);
    tell(
      `  second ${second}: ${answered} answers, p99 ${ms(latency.p99)}, longest ${ms(latency.max)}${wrong.map(([what, times]) => `, ${what}: ${times}`).join('')}`,
    );
  }
  const all = [...failed.values()].reduce((total, one) => total + one, 0);
  tell(`  of ${count(sum.reduce((total, one) => total + one, 0))} calls ${all} failed`);
}
