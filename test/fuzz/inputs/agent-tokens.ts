/**
 * Agent tokens. An unsigned change of a valid token is rejected, unless the text stays the same. A token signed by the agent with any header and
 * claims is accepted only if jose accepts it too, with the same claims.
 */
import fc from 'fast-check';
import { jwtVerify } from 'jose';
import { expect } from 'vitest';
import { agent, BASE_URL, b64, CLAIMS, HEAD, key, NOW, OWNER_ID, present, S, token } from '../../auth/hostile-token.ts';
import type { Count, Fuzzed } from '../fuzz.ts';

const good = token();
const [head = '', payload = '', signature = ''] = good.split('.');

const other = (name: string, ...values: unknown[]) =>
  fc.constantFrom(...values).map((value): [string, unknown] => [name, value]);
const claims = fc
  .array(
    fc.oneof(
      other('agent_id', 'agt_zzzzzzzzzzzzzzzzzzzz', '', null, [agent.agentId]),
      other('owner_id', OWNER_ID.toUpperCase(), 'x', 1, undefined),
      other('iat', S - 1, S + 29, S + 31, S + 0.5, `${S}`, -1, 1e300, null, undefined),
      other('exp', S + 300, S + 301, S - 29, S - 31, S, S + 60.5, `${S + 60}`, 9e15, null, undefined),
      other('nbf', S, S + 29, S + 31, 'x', null),
      other('sub', agent.acceptedSubjects[0], agent.agentId, 'x', '', 1, null),
      other('aud', BASE_URL, [BASE_URL], ['x', BASE_URL], 'x', [], [[BASE_URL]], 1, null),
      other('session_id', 's', 's/a', '', 'x'.repeat(300), 1, '\n'),
      fc.tuple(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 1 })),
    ),
    { maxLength: 3 },
  )
  .map((changes) => ({ ...CLAIMS, ...Object.fromEntries(changes) }));
const heads = fc
  .array(
    fc.oneof(
      other('alg', 'RS256', 'rs256', 'none', 'HS256', 'RS384', 'PS256', null, ['RS256']),
      other('typ', 'JWT', 'jwt', 'at+jwt', '', 'svc-receipt+jwt', 1, undefined),
      other('kid', agent.agentId, agent.fingerprint, 'x', 1, '../k'),
      other('crit', ['b64'], [], ['exp']),
      other('b64', false, true),
      other('zip', 'DEF'),
      other('jwk', { kty: 'RSA' }),
      other('cty', 'JWT'),
    ),
    { maxLength: 2 },
  )
  .map((changes) => ({ ...HEAD, ...Object.fromEntries(changes) }));
/** Serialises JSON in different ways. */
const written = (of: fc.Arbitrary<object>) =>
  fc.tuple(of, fc.constantFrom('plain', 'plain', 'plain', 'spaced', 'twice', 'cut', 'BOM')).map(([value, how]) => {
    const text = JSON.stringify(value, null, how === 'spaced' ? 1 : undefined);
    if (how === 'twice') return `${text.slice(0, -1)},"exp":${S + 60},"exp":${S + 61}}`;
    return how === 'cut' ? text.slice(0, -1) : how === 'BOM' ? `\ufeff${text}` : text;
  });
const signed = fc
  .tuple(written(claims), written(heads))
  .map(([body, header]) => ({ isSigned: true, text: token(body, header) }));

/** Parts of unsigned tokens: those of the valid one, or changed ones. */
const part = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(head, payload, signature) },
  fc.constantFrom(
    '',
    b64(''),
    b64({ ...HEAD, alg: 'none' }),
    b64({ ...CLAIMS, exp: S + 61 }),
    `${signature}=`,
    ` ${head}`,
  ),
  written(claims).map(b64),
  written(heads).map(b64),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
);
const unsigned = fc
  .oneof(
    fc.tuple(part, part, part).map((parts) => parts.join('.')),
    fc.tuple(fc.constant(head), part, fc.constant(signature)).map((parts) => parts.join('.')),
    fc.array(part, { maxLength: 5 }).map((parts) => parts.join('.')),
    fc
      .tuple(fc.nat(good.length), fc.constantFrom(...'AQw_-+/=. \n\0', 'é'), fc.nat(2))
      .map(([at, put, gone]) => good.slice(0, at) + put + good.slice(at + gone)),
    fc.constant(good),
  )
  .map((text) => ({ isSigned: false, text }));

export function agentTokens(count: Count): Fuzzed {
  const property = fc.asyncProperty(
    // A signature costs as much as fifty unsigned inputs.
    fc.oneof({ weight: 20, arbitrary: unsigned }, { weight: 1, arbitrary: signed }),
    async ({ isSigned, text }) => {
      const answer = present(text);
      if (!answer.ok) {
        count(isSigned ? 'signed and refused' : 'refused');
        expect(answer.detail).toMatch(/\S/);
        // Text that is not a token of the agent must not open the agent's breaker.
        if (answer.countsAsStrike) expect(answer.code).toBe('invalid_signature');
        return;
      }
      if (!isSigned) {
        count('the same');
        expect(text).toBe(good);
        return;
      }
      count('signed and accepted');
      const theirs = await jwtVerify(text, key, {
        algorithms: ['RS256'],
        currentDate: new Date(NOW),
        clockTolerance: 30,
        maxTokenAge: 330,
      });
      const { payload: known } = theirs;
      expect(answer.claims).toMatchObject({ agentId: known.agent_id, issuedAt: known.iat, expiresAt: known.exp });
      expect(answer.claims.ownerId.toLowerCase()).toBe(String(known.owner_id).toLowerCase());
      expect([known.agent_id, String(known.owner_id).toLowerCase()]).toEqual([agent.agentId, OWNER_ID]);
      expect(answer.claims.subject).toBe(known.sub);
      expect(answer.claims.sessionId).toBe(known.session_id);
      if (known.aud !== undefined) expect([known.aud].flat()).toContain(BASE_URL);
    },
  );
  return { property, reaches: ['refused', 'the same', 'signed and refused', 'signed and accepted'] };
}
