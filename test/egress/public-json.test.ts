/** JSON of public APIs contains no credential, and none is found: in a thorough run, in a hundred megabytes of it. */
import { expect, it } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { readAnswer } from '../../broker/egress/answers/answer.ts';
import { makeCredentialPatterns } from '../../broker/egress/credential-search/patterns.ts';
import { publicJson } from '../world/public-json.ts';
import { sized } from '../world/runner/thorough.ts';

const MEGABYTES = sized(8, 100);

it(`leaves ${MEGABYTES} MB unchanged`, { timeout: 900_000 }, () => {
  const patterns = makeCredentialPatterns(new Secret('svc-broker:sk/Ab+c=d&e~f*g!h"i<jQ9zz=='), { basic: true });
  let bytes = 0;
  for (const body of publicJson(20_261, MEGABYTES * 1_000_000)) {
    const answer = readAnswer({ status: 200, headers: { 'content-type': 'application/json' }, body }, patterns);
    if (answer.kind !== 'data' || answer.redacted || answer.data !== body.toString())
      expect(answer).toBe(body.toString());
    bytes += body.length;
  }
  expect(bytes).toBeGreaterThanOrEqual(MEGABYTES * 1_000_000);
});
