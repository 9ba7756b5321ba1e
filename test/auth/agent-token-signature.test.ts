import { type KeyObject, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseAgentToken } from '../../broker/auth/agent-token.ts';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import {
  type Answer,
  agent,
  BASE_URL,
  b64,
  CLAIMS,
  expectRefusal,
  HEAD,
  key,
  NOW,
  present,
  refused,
  S,
  stranger,
  token,
  verifier,
} from './hostile-token.ts';

describe('signatures', () => {
  it('JW-04 JW-27 a signature by another key is refused, and counts as one strike', () => {
    expectRefusal(present(token(CLAIMS, HEAD, stranger.privateKey)), 'invalid_signature', 'registered', true);
  });

  it('a signature over other claims is refused', () => {
    const [head, , signature] = token().split('.');
    const answer = present(`${head}.${b64({ ...CLAIMS, exp: S + 61 })}.${signature}`);
    expectRefusal(answer, 'invalid_signature', 'registered', true);
  });

  it.each([1, 64, 255, 257, 384, 512, 513, 1024])('a random signature of %i bytes is refused', (bytes) => {
    const [head, payload] = token().split('.');
    const answer = present(`${head}.${payload}.${randomBytes(bytes).toString('base64url')}`);
    expectRefusal(answer, 'invalid_signature', 'registered', true);
  });

  it('JW-06 a header that supplies its own key is refused', () => {
    const jwk = stranger.publicKey.export({ format: 'jwk' });
    const brought = {
      jwk,
      jku: 'http://169.254.169.254/',
      x5u: 'http://169.254.169.254/',
      x5c: ['MII'],
      crit: ['exp'],
      b64: true,
    };
    for (const [name, value] of Object.entries(brought)) {
      refused(token(CLAIMS, { ...HEAD, [name]: value }, stranger.privateKey), name);
      refused(token(CLAIMS, { ...HEAD, [name]: value }), name);
    }
    expect(present(token(CLAIMS, { ...HEAD, x5t: 'thumbprint' })).ok).toBe(true);
  });

  it('preparing a token with another key does not change the result', () => {
    const verify = (bearer: string, prepareWith: KeyObject) => {
      const parsed = parseAgentToken(bearer);
      if (!parsed.ok) throw new Error(parsed.detail);
      verifier.prepare(parsed.token, prepareWith);
      return verifier.verify(parsed.token, agent, key, { now: NOW, baseUrl: BASE_URL }).ok;
    };
    const forged = token(CLAIMS, HEAD, stranger.privateKey);
    expect([verify(token(), key), verify(token(), stranger.publicKey)]).toEqual([true, true]);
    expect([verify(forged, key), verify(forged, stranger.publicKey)]).toEqual([false, false]);
  });

  it('JW-28 an unknown agent gets the same refusal as a wrong signature', () => {
    const parsed = parseAgentToken(token(CLAIMS, HEAD, stranger.privateKey));
    if (!parsed.ok) throw new Error(parsed.detail);
    const known = verifier.verify(parsed.token, agent, key, { now: NOW, baseUrl: BASE_URL });
    const { countsAsStrike: _known, ...shown } = known as Exclude<Answer, { ok: true }>;
    const { countsAsStrike, ...shownForUnknown } = verifier.refuseUnknown(parsed.token);
    expect(shownForUnknown).toEqual(shown);
    expect(countsAsStrike).toBe(false);
  });

  it('JW-28 refusing an unknown agent takes as long as a wrong signature, for any length of signature', () => {
    const [head, payload] = token().split('.');
    for (const bytes of [255, 256, 384, 512, 600]) {
      const parsed = parseAgentToken(`${head}.${payload}.${Buffer.alloc(bytes, 7).toString('base64url')}`);
      if (!parsed.ok) throw new Error(parsed.detail);
      const known = fastest(() => verifier.verify(parsed.token, agent, key, { now: NOW, baseUrl: BASE_URL }));
      const unknown = fastest(() => verifier.refuseUnknown(parsed.token));
      // The agent's key has 256 bytes. Without the dummy key the two times would differ by a factor of 10 to 20.
      expect(Math.max(known, unknown) / Math.min(known, unknown)).toBeLessThan(4);
    }
  });
});

describe('DOS-01 only a fresh token with the right owner counts as a strike', () => {
  const forged: [name: string, claims: object, strike: boolean][] = [
    ['fresh', {}, true],
    ['another owner', { owner_id: uuidv4() }, false],
    ['expired', { iat: S - 100, exp: S - 40 }, false],
    ['from the future', { iat: S + 3600, exp: S + 3660 }, false],
    ['long-lived', { exp: S + 301 }, false],
    ['without a lifetime', { exp: S }, false],
    ['of another agent', { agent_id: newAgentId() }, false],
    ['with the shortest lifetime', { exp: S + 1 }, true],
    ['with the longest lifetime', { exp: S + 300 }, true],
  ];
  it.each(forged)('%s', (_name, claims, strike) => {
    const answer = present(token({ ...CLAIMS, ...claims }, HEAD, stranger.privateKey));
    expectRefusal(answer, 'invalid_signature', 'registered', strike);
  });
});

/** Returns the fastest of many runs, in microseconds, which excludes the noise of a busy machine. */
function fastest(act: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 300; run++) {
    const start = process.hrtime.bigint();
    act();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 1000);
  }
  return best;
}
