/** Random and damaged inputs for whatever reads bytes of others. A moment each here, longer by `npm run prove`. */
import { describe, test } from 'vitest';
import { chosen, fuzz, SEED, secondsOr } from './fuzz.ts';
import { endpoints } from './inputs/endpoints.ts';
import { pktLines } from './inputs/pkt-lines.ts';

const FUZZERS: Record<string, typeof endpoints> = {
  'fuzz-endpoints': endpoints,
  'fuzz-pkt-lines': pktLines,
};
const SECONDS = secondsOr(process.env.CI ? 1.5 : 0.5);

describe(`for ${SECONDS} s each (PROVE_SEED=${SEED})`, () => {
  test.each(chosen(FUZZERS))('%s', { timeout: 60_000 + SECONDS * 1000 }, (part) =>
    fuzz(
      { part, file: 'test/fuzz/inputs.test.ts', store: 'sqlite', seconds: SECONDS },
      FUZZERS[part] as (typeof FUZZERS)[string],
    ),
  );
});
