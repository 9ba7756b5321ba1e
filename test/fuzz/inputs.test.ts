/** Random and damaged inputs for all parsers of foreign bytes. A moment each here, longer by `npm run prove`. */
import { describe, test } from 'vitest';
import { sized } from '../world/runner/thorough.ts';
import { type Count, chosen, type Fuzzed, fuzz, SEED, secondsOr } from './fuzz.ts';
import { agentTokens } from './inputs/agent-tokens.ts';
import { conditions } from './inputs/conditions.ts';
import { endpoints } from './inputs/endpoints.ts';
import { eventStreams } from './inputs/event-streams.ts';
import { graphql } from './inputs/graphql.ts';
import { json } from './inputs/json.ts';
import { multipart } from './inputs/multipart.ts';
import { pktLines } from './inputs/pkt-lines.ts';
import { pushReports } from './inputs/push-reports.ts';

const FUZZERS: Record<string, (count: Count) => Fuzzed> = {
  'fuzz-agent-tokens': agentTokens,
  'fuzz-conditions': conditions,
  'fuzz-endpoints': endpoints,
  'fuzz-event-streams': eventStreams,
  'fuzz-graphql': graphql,
  'fuzz-json': json,
  'fuzz-multipart': multipart,
  'fuzz-pkt-lines': pktLines,
  'fuzz-push-reports': pushReports,
};
const SECONDS = secondsOr(sized(0.5, 1.5));

describe(`for ${SECONDS} s each (PROVE_SEED=${SEED})`, () => {
  test.each(chosen(FUZZERS))('%s', { timeout: 60_000 + SECONDS * 1000, retry: 0 }, (part) =>
    fuzz({ part, file: 'test/fuzz/inputs.test.ts', store: 'sqlite', seconds: SECONDS }, FUZZERS[part]!),
  );
});
