/** The next release is killed while it migrates a store on which this release has run. */
import { join } from 'node:path';
import { nextRelease } from '../../world/next-release.ts';
import type { Invariants } from '../invariants.ts';
import { kill, serving } from '../kill-broker.ts';
import { pause, type Scene } from '../scene.ts';
import { agentsOf } from './calls.ts';

/** Rows that exist before the migration, and must be unchanged after it. */
const ROWS = 40;
const MAX_START_MS = 700;

/** Kills a start that has to migrate, `cuts` times; the migration's column is dropped before each. */
export async function cutMigrations(scene: Scene, invariants: Invariants, cuts: number): Promise<void> {
  const { random, ledger, spawn, reader, world } = scene;
  const program = join(nextRelease(), 'dist', 'child-broker.js');
  const [agent] = await agentsOf(scene);
  for (let at = 0; at < ROWS; at++)
    await agent!.act({ platform: 'demo', endpoint: `/items/m${at}`, method: 'PATCH', scope: 'demo:write', data: {} });
  await world.running.stop();
  const rows = async () => JSON.stringify(await reader.rows(`select id, row_hash from audit_rows order by id`));
  const before = await rows();
  let next = spawn({}, program);
  for (let cut = 0; cut < cuts; cut++) {
    const doomed = next;
    next = spawn({}, program);
    void doomed.serve();
    await pause(random() * MAX_START_MS);
    await kill(doomed);
    ledger.cuts++;
    const applied = await reader.rows(`select name from kysely_migration where name = '0999-shade'`);
    ledger.find(applied.length > 0 ? 'kills after the migration' : 'kills before the commit of the migration');
    const current = await serving(next);
    next = spawn({}, program);
    await invariants.check();
    await reader.rows('select shade from agents');
    if ((await rows()) !== before) throw new Error(`after cut ${cut + 1}: rows are not what they were`);
    ledger.check('the store is migrated, once, and its rows are unchanged');
    current.signal('SIGTERM');
    await current.ended;
    await reader.change('alter table agents drop column shade');
    await reader.change(`delete from kysely_migration where name = '0999-shade'`);
  }
  next.signal('SIGKILL');
}
