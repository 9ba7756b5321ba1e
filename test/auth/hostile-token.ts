/** A test agent with its key, and tokens for it: a valid one, and those that an attacker would make. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { expect } from 'vitest';
import { parseAgentToken } from '../../broker/auth/agent-token.ts';
import { createAgentTokenVerifier, type RegisteredAgent } from '../../broker/auth/verify-agent-token.ts';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';

export const NOW = Date.parse('2026-03-01T12:00:00Z');
export const S = NOW / 1000;
export const BASE_URL = 'https://broker.example';

export const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
export const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
const registered = parsePublicKey(pair.publicKey.export({ type: 'spki', format: 'pem' }) as string);
if (!registered.ok) throw new Error(registered.error);
export const { key, fingerprint, pem } = registered;

export const OWNER_ID = uuidv4();
/** The agent's former owner. */
export const FORMER_OWNER_ID = uuidv4();

export const agent: RegisteredAgent = {
  agentId: newAgentId(),
  ownerIds: [OWNER_ID, FORMER_OWNER_ID],
  fingerprint,
  acceptedSubjects: ['spiffe://broker.example/orgs/o/agents/a', 'did:web:broker.example:agents:a'],
};
export const CLAIMS = { agent_id: agent.agentId, owner_id: OWNER_ID, iat: S, exp: S + 60 };
export const HEAD = { alg: 'RS256', typ: 'JWT' };

export const b64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/** Signs a token with any header and payload (raw text where it is a string). */
export function token(claims: unknown = CLAIMS, head: unknown = HEAD, by = pair.privateKey, hash = 'sha256'): string {
  const input = `${b64(head)}.${b64(claims)}`;
  return `${input}.${sign(hash, Buffer.from(input), by).toString('base64url')}`;
}

export const verifier = createAgentTokenVerifier();
export type Answer = ReturnType<typeof verifier.verify>;

export function present(bearer: string, now = NOW, of: RegisteredAgent = agent): Answer {
  const parsed = parseAgentToken(bearer);
  return parsed.ok ? verifier.verify(parsed.token, of, key, { now, baseUrl: BASE_URL }) : parsed;
}

export function expectRefusal(answer: Answer, code: string, words: string, countsAsStrike = false): void {
  expect(answer).toMatchObject({ ok: false, code, countsAsStrike });
  expect(!answer.ok && answer.detail).toContain(words);
}
export const refused = (bearer: string, words: string, code = 'invalid_token') =>
  expectRefusal(present(bearer), code, words);
