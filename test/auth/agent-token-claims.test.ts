import { describe, expect, it } from 'vitest';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import {
  agent,
  BASE_URL,
  CLAIMS,
  FORMER_OWNER_ID,
  fingerprint,
  HEAD,
  OWNER_ID,
  present,
  refused,
  S,
  token,
} from './hostile-token.ts';

describe('JW-07 kid', () => {
  it.each([
    ['the agent id', agent.agentId],
    ['the thumbprint of its key', fingerprint],
  ])('may be %s', (_name, kid) => {
    expect(present(token(CLAIMS, { ...HEAD, kid })).ok).toBe(true);
  });
  it.each(['../../etc/passwd', "' OR 1=1--", newAgentId(), '\0', '', `${agent.agentId} `])(
    'is refused for any other value: %j',
    (kid) => {
      refused(token(CLAIMS, { ...HEAD, kid }), 'kid');
    },
  );
  it('is refused when it is not a string', () => {
    for (const kid of [1, null, [agent.agentId], {}]) refused(token(CLAIMS, { ...HEAD, kid }), 'kid');
  });
  it('of 10 KB is refused for its size', () => refused(token(CLAIMS, { ...HEAD, kid: 'k'.repeat(10_240) }), 'longer'));
});

describe('times', () => {
  const at = (iat: unknown, exp: unknown) => token({ ...CLAIMS, iat, exp });

  it('JW-08 a lifetime of 300 s is accepted, a longer one is refused', () => {
    expect(present(at(S, S + 300)).ok).toBe(true);
    expect(present(at(S, S + 60)).ok).toBe(true);
    refused(at(S, S + 301), '300 seconds');
    refused(at(S, S + 315_360_000), '300 seconds');
  });

  it('JW-09 an infinite exp is refused', () => {
    refused(token(JSON.stringify(CLAIMS).replace(`${S + 60}`, '1e999')), 'exp');
  });

  it('JW-10 an exp further in the past than the skew of 30 s is refused', () => {
    expect(present(at(S - 60, S - 1)).ok).toBe(true);
    expect(present(at(S - 60, S - 30)).ok).toBe(true);
    refused(at(S - 60, S - 31), 'expired', 'token_expired');
  });

  it('JW-11 an iat further in the future than the skew is refused', () => {
    expect(present(at(S + 30, S + 60)).ok).toBe(true);
    refused(at(S + 31, S + 60), 'future');
    refused(at(S + 3600, S + 3660), 'future');
    refused(at(S + 3600, S + 60), 'later than iat');
  });

  it('an exp that is not later than iat is refused', () => {
    refused(at(S, S), 'later than iat');
    refused(at(S, S - 10), 'later than iat');
    expect(present(at(S, S + 1)).ok).toBe(true);
  });

  it('an nbf further in the future than the skew is refused', () => {
    expect(present(token({ ...CLAIMS, nbf: S + 30 })).ok).toBe(true);
    refused(token({ ...CLAIMS, nbf: S + 31 }), 'nbf');
  });

  it.each([
    ['"now"', 'now'],
    ['a fraction', S + 0.5],
    ['-1.5', -1.5],
    ['a string of digits', `${S}`],
    ['null', null],
    ['a list', [S]],
    ['too large to be exact', 2 ** 53],
    ['true', true],
  ])('JW-13 values that are not whole numbers are refused: %s', (_name, value) => {
    refused(at(value, S + 60), 'iat must be a whole number');
    refused(at(S, value), 'exp must be a whole number');
    refused(token({ ...CLAIMS, nbf: value }), 'must be a whole number');
  });
});

describe('claims', () => {
  it.each(['agent_id', 'owner_id', 'iat', 'exp'] as const)('JW-12 a token without %s is refused', (name) => {
    const { [name]: _left, ...others } = CLAIMS;
    refused(token(others), name);
  });

  it.each([
    ['an object', { $ne: 1 }],
    ['a list', [agent.agentId]],
    ['a number', 1],
    ['null', null],
    ['upper case', agent.agentId.toUpperCase()],
    ['too short', agent.agentId.slice(0, -1)],
    ['too long', `${agent.agentId}ab`],
    ['a newline at the end', `${agent.agentId}\n`],
    ['NUL', `${agent.agentId.slice(0, -1)}\0`],
    ['a uuid', uuidv4()],
  ])('JW-13 an agent_id that is %s is refused', (_name, agent_id) =>
    refused(token({ ...CLAIMS, agent_id }), 'agent_id must be'),
  );

  it.each([
    ['an object', { $ne: 1 }],
    ['a list', [OWNER_ID]],
    ['braces', `{${OWNER_ID}}`],
    ['no uuid', 'ann'],
    ['a newline at the end', `${OWNER_ID}\n`],
  ])('JW-13 an owner_id that is %s is refused', (_name, owner_id) =>
    refused(token({ ...CLAIMS, owner_id }), 'owner_id must be'),
  );

  it('JW-15 the owner_id of another owner is refused', () =>
    refused(token({ ...CLAIMS, owner_id: uuidv4() }), 'owner_id'));

  it('the owner_id of a former owner is accepted with the agent’s own key', () => {
    expect(present(token({ ...CLAIMS, owner_id: FORMER_OWNER_ID })).ok).toBe(true);
  });

  it("JW-24 another agent's id, signed with this agent's key, is refused", () => {
    refused(token({ ...CLAIMS, agent_id: newAgentId() }), 'another agent');
  });

  it('JW-16 a sub that is not the workload identity, DID or agent id is refused', () => {
    for (const sub of agent.acceptedSubjects) expect(present(token({ ...CLAIMS, sub })).ok).toBe(true);
    for (const sub of ['', 'spiffe://other', OWNER_ID])
      refused(token({ ...CLAIMS, sub }), "the agent's id, its DID or its workload identity id");
    for (const sub of [1, null, {}, [agent.acceptedSubjects[0]]])
      refused(token({ ...CLAIMS, sub }), 'sub, when present, must be a string');
  });

  it('an aud without this broker is refused', () => {
    for (const aud of [BASE_URL, ['x', BASE_URL]]) expect(present(token({ ...CLAIMS, aud })).ok).toBe(true);
    for (const aud of ['', `${BASE_URL}/`, `${BASE_URL}.evil`, [], ['x'], 1, null, [BASE_URL, 1], { 0: BASE_URL }]) {
      refused(token({ ...CLAIMS, aud }), 'aud');
    }
  });

  it('a malformed session_id is refused', () => {
    for (const session_id of ['a', 'a'.repeat(128)]) expect(present(token({ ...CLAIMS, session_id })).ok).toBe(true);
    for (const session_id of ['', 'a'.repeat(129), 'a b', 'a\0', 'é', 'a\n', '\ud800', 1, null, {}]) {
      refused(token({ ...CLAIMS, session_id }), 'session_id');
    }
  });

  it('a duplicate claim is refused, at any depth', () => {
    const text = JSON.stringify(CLAIMS).slice(0, -1);
    refused(token(`${text},"agent_id":"${agent.agentId}"}`), 'unique names');
    refused(token(`${text},"\\u0061gent_id":"${newAgentId()}"}`), 'unique names');
    refused(token(`${text},"x":{"y":[{"z":1,"z":1}]}}`), 'unique names');
    expect(present(token(`${text},"x":":\\":\\\\","y":{"z":{"z":":"}},"__proto__":{"iat":0}}`)).ok).toBe(true);
  });

  it('claims that are not a JSON object in UTF-8 are refused', () => {
    for (const claims of ['[]', 'null', '"x"', '1', '', '{', '{"a":1} x', '\ufeff{}'])
      refused(token(claims), claims === '' ? 'base64url' : 'claims');
    const [head, , signature] = token().split('.');
    refused(`${head}.${Buffer.from('7b2261223a22ff227d', 'hex').toString('base64url')}.${signature}`, 'claims');
  });
});
