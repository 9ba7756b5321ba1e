/** Random sequences of steps on a running broker and on a small model of it, written from the specification. */
import { describe, test } from 'vitest';
import { runsOn } from '../prove/drawn-store.ts';
import { startGitWorld } from '../world/git-world.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES, type StoreKind } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';
import { type Count, chosen, type Fuzzed, fuzz, SEED, secondsOr } from './fuzz.ts';
import { approvals } from './models/approvals.ts';
import { budgets } from './models/budgets.ts';
import { children } from './models/children.ts';
import { consents } from './models/consents.ts';
import { gitRefs } from './models/git-refs.ts';
import { grants } from './models/grants.ts';
import { limits } from './models/limits.ts';
import { lookBacks } from './models/look-backs.ts';

const MODELS: Record<string, (store: StoreKind, count: Count) => Promise<Fuzzed>> = {
  'model-approvals': async (store, count) => approvals(await startWorld(store), count),
  'model-budgets': async (store, count) => budgets(await startWorld(store, { AGENT_BROKER_LIMIT_FACTOR: '1' }), count),
  'model-children': async (store, count) => children(await startWorld(store), count),
  'model-consents': consents,
  'model-git-refs': async (store, count) => gitRefs(await startGitWorld(store), count),
  'model-grants': async (store, count) => grants(await startWorld(store), count),
  'model-look-backs': async (store, count) => lookBacks(await startWorld(store), count),
  'model-limits': async (store, count) => limits(await startWorld(store), count),
};
const SECONDS = secondsOr(sized(0.5, 4));

// No retry: a single failure is a finding.

describe.each(STORES)(`for ${SECONDS} s each on %s (PROVE_SEED=${SEED})${postgresNote}`, (store) => {
  test.each(chosen(MODELS).filter((_, at) => runsOn(store, SEED, at)))(
    '%s',
    { timeout: 90_000 + SECONDS * 1000, retry: 0 },
    (part) =>
      fuzz({ part, file: 'test/fuzz/models.test.ts', store, seconds: SECONDS }, (count) => MODELS[part]!(store, count)),
  );
});
