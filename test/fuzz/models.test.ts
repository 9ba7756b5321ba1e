/** Random sequences of steps on a running broker and on a small model of it, written from the specification. */
import { describe, test } from 'vitest';
import { postgresNote, STORES } from '../world/stores.ts';
import { startWorld, type World } from '../world/world.ts';
import { type Count, chosen, type Fuzzed, fuzz, SEED, secondsOr } from './fuzz.ts';
import { approvals } from './models/approvals.ts';
import { children } from './models/children.ts';
import { grants } from './models/grants.ts';

const MODELS: Record<string, (world: World, count: Count) => Fuzzed> = {
  'model-approvals': approvals,
  'model-children': children,
  'model-grants': grants,
};
const SECONDS = secondsOr(4);

describe.each(STORES)(`for ${SECONDS} s each on %s (PROVE_SEED=${SEED})${postgresNote}`, (store) => {
  test.each(chosen(MODELS))('%s', { timeout: 90_000 + SECONDS * 1000 }, async (part) => {
    const world = await startWorld(store);
    await fuzz({ part, file: 'test/fuzz/models.test.ts', store, seconds: SECONDS }, (count) =>
      MODELS[part]!(world, count),
    );
  });
});
