/**
 * kill -9 at random instants of all kinds of work, on each store. A few kills of calls and approvals here; `npm run prove` makes hundreds.
 * PROVE_PART, PROVE_CUTS and PROVE_SEED set the part, the number of kills, and the seed of the instants.
 */
import { describe, expect, test } from 'vitest';
import { makeRandom } from '../world/random.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { runsOn } from './drawn-store.ts';
import { type Invariants, startInvariants } from './invariants.ts';
import { cutWork } from './kill-broker.ts';
import { Ledger } from './ledger.ts';
import { applies } from './scenarios/applies.ts';
import { approvals } from './scenarios/approvals.ts';
import { auditPushes } from './scenarios/audit-pushes.ts';
import { cutBackups } from './scenarios/backups.ts';
import { calls } from './scenarios/calls.ts';
import { cutExchanges } from './scenarios/exchanges.ts';
import { lookBacks } from './scenarios/look-backs.ts';
import { cutMasterKey } from './scenarios/master-key.ts';
import { cutMigrations } from './scenarios/migrations.ts';
import { notices } from './scenarios/notices.ts';
import { pushes } from './scenarios/pushes.ts';
import { refreshes } from './scenarios/refreshes.ts';
import { cutReplicas } from './scenarios/replicas.ts';
import { rotations } from './scenarios/rotations.ts';
import { streams } from './scenarios/streams.ts';
import { type Scene, setScene, type Work } from './scene.ts';

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
