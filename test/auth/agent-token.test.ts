import { createHmac } from 'node:crypto';
import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { signCompact } from '../../broker/crypto/jws.ts';
import { generateSigningKey, importSigningKey } from '../../broker/crypto/key-set.ts';
import {
  agent,
  BASE_URL,
  b64,
  CLAIMS,
  expectRefusal,
  HEAD,
  NOW,
  OWNER_ID,
  pair,
  pem,
  present,
  refused,
  S,
  token,
} from './hostile-token.ts';

describe('a valid agent token', () => {
  it('is accepted, and its claims are returned', () => {
    expect(present(token())).toEqual({
      ok: true,
      claims: { agentId: agent.agentId, ownerId: OWNER_ID, issuedAt: S, expiresAt: S + 60 },
    });
  });

  it('made with jose and with every optional claim is accepted', async () => {
    const jwt = await new SignJWT({ agent_id: agent.agentId, owner_id: OWNER_ID, session_id: 'run-7/a' })
      .setProtectedHeader({ alg: 'RS256', kid: agent.agentId })
      .setIssuedAt(S)
      .setNotBefore(S)
      .setExpirationTime(S + 300)
      .setSubject(agent.acceptedSubjects[0]!)
      .setAudience(BASE_URL)
      .setJti('x')
      .sign(pair.privateKey);
    expect(present(jwt)).toMatchObject({
      ok: true,
      claims: { sessionId: 'run-7/a', subject: agent.acceptedSubjects[0], audience: [BASE_URL], notBefore: S },
    });
  });

  it('JW-21 is accepted again within its lifetime', () => {
    const bearer = token();
    expect(present(bearer).ok).toBe(true);
    expect(present(bearer, NOW + 59_000).ok).toBe(true);
  });

  it('may have an owner_id in upper case, a 21-character agent id, and unknown claims', () => {
    expect(present(token({ ...CLAIMS, owner_id: OWNER_ID.toUpperCase() })).ok).toBe(true);
    const longer = { ...agent, agentId: `${agent.agentId}z` };
    expect(present(token({ ...CLAIMS, agent_id: longer.agentId }), NOW, longer).ok).toBe(true);
    expect(present(token({ ...CLAIMS, roles: [{ deep: { er: ['x'] } }] })).ok).toBe(true);
  });
});

describe('algorithms', () => {
  it('JW-01 alg none is refused', () => {
    refused(`${b64({ alg: 'none' })}.${b64(CLAIMS)}.`, 'RS256');
    refused(token(CLAIMS, { ...HEAD, alg: 'none' }), 'RS256');
    refused(`${b64(HEAD)}.${b64(CLAIMS)}.`, 'no signature');
  });

  it('JW-02 HS256 with the public key as secret is refused', () => {
    const input = `${b64({ alg: 'HS256' })}.${b64(CLAIMS)}`;
    for (const secret of [pem, pem.trimEnd()]) {
      refused(`${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`, 'RS256');
    }
  });

  it.each(['RS512', 'RS384', 'PS256', 'ES256', 'rs256', 'RS256 ', '', null, 256, ['RS256']])(
    'JW-03 alg %j is refused',
    (alg) => {
      refused(token(CLAIMS, { ...HEAD, alg }, pair.privateKey, alg === 'RS512' ? 'sha512' : 'sha256'), 'RS256');
    },
  );

  it('JW-03 a SHA-512 signature under alg RS256 is refused', () => {
    const bearer = token(CLAIMS, HEAD, pair.privateKey, 'sha512');
    expectRefusal(present(bearer), 'invalid_signature', 'registered', true);
  });
});

describe('the type', () => {
  it.each(['JWT', 'jwt', 'Jwt'])('may be %s, or absent', (typ) => {
    expect(present(token(CLAIMS, { ...HEAD, typ })).ok).toBe(true);
    expect(present(token(CLAIMS, { alg: 'RS256' })).ok).toBe(true);
  });

  it.each(['at+jwt', 'svc-receipt+jwt', 'svc-attest+jwt', 'application/jwt', '', 1, null])(
    'JW-23 may not be %j',
    (typ) => {
      refused(token(CLAIMS, { ...HEAD, typ }), 'typ');
    },
  );

  it('JW-23 a receipt, an attestation and an owner session are not accepted as agent tokens', () => {
    const evidence = importSigningKey(generateSigningKey());
    for (const typ of ['svc-receipt+jwt', 'svc-attest+jwt', 'JWT'])
      refused(signCompact(evidence, { typ }, CLAIMS), 'RS256');
  });
});

describe('the text of a token', () => {
  it('JW-20 may have 8 KiB at most, and a longer text is not even decoded', () => {
    const room = 8192 - token({ ...CLAIMS, x: '' }).length;
    const fitting = token({ ...CLAIMS, x: 'x'.repeat(Math.floor((room * 3) / 4)) });
    expect(fitting.length).toBeLessThanOrEqual(8192);
    expect(fitting.length).toBeGreaterThan(8188);
    expect(present(fitting).ok).toBe(true);
    refused(`${fitting}${'A'.repeat(8193 - fitting.length)}`, 'longer than 8192');
    refused('.'.repeat(2_000_000), 'longer than 8192');
  });

  it('must have three parts', () => {
    const good = token();
    for (const bearer of ['', 'x', 'a.b', `${good}.`, `${good}.x`, '..', '...', `.${good}`])
      expect(present(bearer).ok).toBe(false);
    refused(`${good}.x`, 'three parts');
    refused('x', 'three parts');
  });

  it('must be canonical base64url: no padding, no white space, no alternative encoding of the same bytes', () => {
    const good = token();
    const [head, payload, signature] = good.split('.') as [string, string, string];
    const spare = signature.slice(0, -1) + String.fromCharCode(signature.charCodeAt(signature.length - 1) + 1);
    expect(Buffer.from(spare, 'base64url')).toEqual(Buffer.from(signature, 'base64url'));
    for (const other of [
      `${signature}==`,
      `${signature} `,
      `${signature}\n`,
      spare,
      `${signature}!`,
      signature.slice(0, -1),
    ]) {
      expectRefusal(present(`${head}.${payload}.${other}`), 'invalid_token', 'base64url');
    }
    refused(`${head}=.${payload}.${signature}`, 'base64url');
    refused(`${head}.${payload}=.${signature}`, 'base64url');
    refused(`${head} .${payload}.${signature}`, 'base64url');
    refused(`Bearer ${good}`, 'base64url');
    expect(present(good).ok).toBe(true);
  });

  it.each(['[]', 'null', '1', '"RS256"', '{', '{"alg":"RS256","alg":"none"}'])(
    'a header that is no JSON object with unique names is refused: %s',
    (head) => refused(token(CLAIMS, head), 'a header that is not a JSON object'),
  );

  it('thousands of nested brackets are refused without a crash', () => {
    refused(token(`{"a":${'['.repeat(2500)}${']'.repeat(2500)}}`), 'agent_id');
  });
});

it('no refusal repeats the input', () => {
  const canary = 'CANARY9f8e7d';
  const hostile = [
    token({ ...CLAIMS, agent_id: canary }),
    token({ ...CLAIMS, sub: canary }),
    token({ ...CLAIMS, aud: canary }),
    token(CLAIMS, { ...HEAD, kid: canary }),
    token(CLAIMS, { ...HEAD, typ: canary }),
    canary,
  ];
  for (const bearer of hostile) expect(JSON.stringify(present(bearer))).not.toContain(canary);
});
