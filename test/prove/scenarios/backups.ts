/** Kills `agent-broker backup` and `restore` themselves, while a broker works on the store that is backed up. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readManifest } from '../../../broker/store/backup-manifest.ts';
import { TestAgent } from '../../world/agent.ts';
import { BIN, COMPILE_CACHE } from '../../world/checkout.ts';
import { runCommand } from '../../world/command.ts';
import { query } from '../../world/store-contents.ts';
import { newDatabase, newFolder } from '../../world/stores.ts';
import { ALLOW_ALL } from '../../world/world.ts';
import type { Invariants } from '../invariants.ts';
import { kill } from '../kill-broker.ts';
import { pause, type Scene, withLog, workers } from '../scene.ts';
import { agentsOf } from './calls.ts';

const ROWS = 200;
const MAX_ORPHAN_MS = 30_000;

type Environment = Record<string, string>;
/** A place to restore into. `untouched`: whether a restore has not changed anything there yet. */
type Machine = { env: Environment; replaces: boolean; untouched(): Promise<boolean> };

const envOf = ({ PORT: _, ...environment }: Environment): Environment => environment;

/** Runs a command and kills it after `afterMs`, unless it ends before. */
async function cutCommand(words: readonly string[], env: Environment, afterMs: number): Promise<'killed' | 'ended'> {
  const child: ChildProcess = spawn(process.execPath, [BIN, ...words], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...envOf(env) },
    stdio: 'ignore',
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), afterMs);
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  if (signal === 'SIGKILL') return 'killed';
  if (code !== 0) throw new Error(`agent-broker ${words.join(' ')} ended by itself with ${code}`);
  return 'ended';
}

async function run(words: readonly string[], env: Environment): Promise<number> {
  const began = performance.now();
  const { code, stderr } = await runCommand(words, { cwd: env.AGENT_BROKER_DATA!, env: envOf(env) });
  if (code !== 0) throw new Error(`agent-broker ${words.join(' ')}: ${stderr}`);
  return performance.now() - began;
}

/** Kills backups and restores in turn, `cuts` times. */
export async function cutBackups(scene: Scene, invariants: Invariants, cuts: number): Promise<void> {
  const { random, ledger, world, reader, store } = scene;
  const [agent] = await agentsOf(scene, { rules: ALLOW_ALL });
  const call = (item: string, baseUrl?: string) =>
    new TestAgent({ ...agent!, ...(baseUrl && { baseUrl }) }).act({
      platform: 'demo',
      endpoint: `/items/${item}`,
      method: 'PATCH',
      scope: 'demo:write',
      data: {},
    });
  for (let at = 0; at < ROWS; at++) invariants.answered(`f${at}`, await call(`f${at}`));
  const work = workers(4, async (worker, turn) => {
    const answer = await call(`b${worker}-${turn}`);
    invariants.answered(`b${worker}-${turn}`, answer);
    await pause(random() * 20);
    return answer.status === 200;
  });

  /** Creates an empty place with the master key. `database`: uses this existing database instead of a new one. */
  const emptyPlace = async (database?: string): Promise<Environment> => {
    const data = newFolder();
    mkdirSync(join(data, 'keys'), { mode: 0o700 });
    copyFileSync(world.running.broker.config.keyFile, join(data, 'keys', 'master.key'));
    return {
      ...world.environment,
      PORT: '0',
      AGENT_BROKER_DATA: data,
      ...(store === 'postgres' && { DATABASE_URL: database ?? (await newDatabase()) }),
    };
  };
  const files = newFolder();
  const good = join(files, 'good');
  const took = {
    backup: await run(['backup', good], world.environment),
    restore: 0,
  };
  /** On SQLite, a restored and reviewed store of a broker, which a restore may replace. */
  const old = await emptyPlace();
  took.restore = await run(['restore', good], old);
  if (store === 'sqlite') {
    const database = new DatabaseSync(join(old.AGENT_BROKER_DATA!, 'store', 'broker.db'));
    database.exec('update organisations set restored = null');
    database.close();
  }
  const newMachine = async (replaces: boolean): Promise<Machine> => {
    const env = await emptyPlace();
    const data = env.AGENT_BROKER_DATA!;
    if (replaces) cpSync(old.AGENT_BROKER_DATA!, data, { recursive: true });
    const remembered = join(data, 'generation.json');
    const before = replaces ? readFileSync(remembered, 'utf8') : undefined;
    return {
      env,
      replaces,
      untouched: async () => {
        if (store === 'postgres') return (await tablesOf(env)).length === 0;
        const isSame = !existsSync(remembered) ? before === undefined : readFileSync(remembered, 'utf8') === before;
        return isSame || (!replaces && !existsSync(join(data, 'store.restoring')) && !existsSync(join(data, 'store')));
      },
    };
  };
  const tablesOf = async ({ DATABASE_URL: url }: Environment) =>
    await query({ DATABASE_URL: url! }, `select tablename from pg_tables where schemaname = 'public'`);

  /** Starts a broker there and makes a call. Throws when a restore has changed something but the broker behaves as if it had not. */
  const start = async (env: Environment, untouched: boolean, isReplaced: boolean): Promise<void> => {
    const child = scene.spawn(env);
    const url = await child.serve();
    if (url === undefined) {
      const said = child.output().stderr;
      if (!/restore/i.test(said)) throw new Error(`a start after a restore that was killed says: ${said}`);
      ledger.find('starts refused after a killed restore');
      return;
    }
    const { status, body } = await call(`elsewhere.${Math.floor(random() * 1e9)}`, url);
    await kill(child);
    const isQuarantined = status === 503 && body.error === 'store_restored';
    // An empty store, without this agent, or the store that was to be replaced.
    const isAsBefore = untouched && status === (isReplaced ? 200 : 401);
    if (!isQuarantined && !isAsBefore)
      throw new Error(`a call after a restore that was killed: ${status} ${body.error}`);
    ledger.find(isQuarantined ? 'starts in quarantine' : 'starts on the previous store');
  };

  const cutBackup = async (file: string): Promise<void> => {
    const before = Number((await reader.rows('select count(*) as count from audit_rows'))[0].count);
    await cutCommand(['backup', file], world.environment, random() * took.backup * 1.1);
    if (existsSync(file)) {
      const { rows } = readManifest(file);
      if (rows.audit_rows! < before) throw new Error(`a backup has ${rows.audit_rows} rows of ${before}`);
      await run(['restore', file], await emptyPlace());
      ledger.find('killed backups that were complete');
    } else {
      const { code } = await runCommand(['restore', file], {
        cwd: files,
        env: envOf(await emptyPlace()),
      });
      if (code !== 1) throw new Error(`restoring what a killed backup left ends with ${code}`);
      await run(['backup', file], world.environment);
      ledger.find('interrupted backups, repeated');
    }
    ledger.check('what a killed backup leaves is complete, or refused by restore');
  };

  const cutRestore = async (): Promise<void> => {
    const machine = await newMachine(store === 'sqlite' && random() < 0.5);
    const { env, replaces } = machine;
    const words = ['restore', good, ...(replaces ? ['--replace'] : [])];
    await cutCommand(words, env, random() * took.restore * 1.1);
    if (store === 'postgres') await orphansEnded(env.DATABASE_URL!);
    const untouched = await machine.untouched();
    // The database may be started from another machine, which has no memory of the restore. Tested first, because a start advances the store.
    if (store === 'postgres') await start(await emptyPlace(env.DATABASE_URL), untouched, false);
    else await start(env, untouched, replaces);
    ledger.check('after a killed restore no broker makes a call of the restored store without a review');
    const again = store === 'postgres' ? { ...env, DATABASE_URL: await newDatabase() } : env;
    await run(['restore', good, '--replace'], again);
    await start(again, false, false);
    ledger.check('a killed restore can be repeated');
  };

  for (let cut = 0; cut < cuts; cut++) {
    work.resume();
    try {
      if (cut % 2 === 0) await cutBackup(join(files, `cut-${cut}`));
      else await cutRestore();
      ledger.cuts++;
      await work.pause();
      await invariants.check();
    } catch (error) {
      await work.pause();
      throw withLog(scene, cut + 1, error);
    }
  }
  await invariants.checkAll();
  ledger.find('operations', work.progress());
}

/** Waits until the PostgreSQL program that a killed restore had started has ended. */
async function orphansEnded(url: string): Promise<void> {
  const began = performance.now();
  for (;;) {
    const [found] = await query(
      { DATABASE_URL: url },
      'select count(*) as count from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    if (Number(found!.count) === 0) return;
    if (performance.now() - began > MAX_ORPHAN_MS) throw new Error('pg_restore does not end');
    await pause(50);
  }
}
