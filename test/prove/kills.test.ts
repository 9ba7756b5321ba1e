/**
 * kill -9 at random instants of all kinds of work, on each store. A few kills of calls and approvals here; `npm run prove` makes hundreds.
 * PROVE_PART, PROVE_CUTS and PROVE_SEED set the part, the number of kills, and the seed of the instants.
 */
import { describe, expect, test } from 'vitest';
import { makeRandom } from '../world/random.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { sized } from '../world/thorough.ts';
import { cutWork } from './cut.ts';
import { runsOn } from './drawn-store.ts';
import { type Invariants, startInvariants } from './invariants.ts';
import { Ledger } from './ledger.ts';
import { type Scene, setScene, type Work } from './scene.ts';
import { applies } from './works/applies.ts';
import { approvals } from './works/approvals.ts';
import { auditPushes } from './works/audit-pushes.ts';
import { cutBackups } from './works/backups.ts';
import { calls } from './works/calls.ts';
import { cutExchanges } from './works/exchanges.ts';
import { lookBacks } from './works/look-backs.ts';
import { cutMasterKey } from './works/master-key.ts';
import { cutMigrations } from './works/migrations.ts';
import { notices } from './works/notices.ts';
import { pushes } from './works/pushes.ts';
import { refreshes } from './works/refreshes.ts';
import { cutReplicas } from './works/replicas.ts';
import { rotations } from './works/rotations.ts';
import { streams } from './works/streams.ts';

const WORKS: Record<string, (scene: Scene, invariants: () => Invariants) => Promise<Work>> = {
  calls,
  streams,
  approvals,
  'look-backs': lookBacks,
  refreshes,
  applies,
  rotations,
  pushes,
  'audit-pushes': auditPushes,
  notices,
};
/** Parts with their own way to kill, instead of `cutWork`. */
const OTHERS: Record<string, (scene: Scene, invariants: Invariants, cuts: number) => Promise<void>> = {
  migrations: cutMigrations,
  backups: cutBackups,
  'master-key': cutMasterKey,
  replicas: cutReplicas,
  exchanges: cutExchanges,
};
const CUTS = Number(process.env.PROVE_CUTS ?? sized(2, 4));
const SEED = Number(process.env.PROVE_SEED ?? Math.floor(Math.random() * 2 ** 32));
const CHOSEN = process.env.PROVE_PART?.split(',') ?? ['calls', 'approvals'];

// No retry in CI: these tests look for rare failures.
describe.each(STORES)(`kill -9 on %s (PROVE_SEED=${SEED})${postgresNote}`, { retry: 0 }, (store) => {
  const parts = CHOSEN.filter(
    (part, at) => runsOn(store, SEED, at) && (!['replicas', 'master-key'].includes(part) || store === 'postgres'),
  );
  test.each(parts)(
    `ST-03 I1 I2 I3 I4 I5 I7 in %s, ${CUTS} times`,
    { timeout: 60_000 + CUTS * 60_000 },
    async (part) => {
      const ledger = new Ledger({ part, store, seed: SEED });
      await ledger.keep(async () => {
        let invariants: Invariants | undefined;
        const make = WORKS[part];
        const prepare = async (scene: Scene) => await make?.(scene, () => invariants!);
        const { scene, work } = await setScene(store, prepare, { random: makeRandom(SEED), ledger });
        invariants = startInvariants(scene);
        if (work) await cutWork({ scene, work }, invariants, CUTS);
        else await OTHERS[part]!(scene, invariants, CUTS);
      });
      expect(ledger.cuts).toBe(CUTS);
    },
  );
});
