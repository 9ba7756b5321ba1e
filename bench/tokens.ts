/**
 * Agents' keys and agent tokens, created while nothing is measured: an RSA signature costs more than a governed call.
 */

import { generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { present } from '../broker/runtime/present.ts';

export type AgentKey = { publicKeyPem: string; privateKey: KeyObject };
export type BenchAgent = { agentId: string; ownerId: string; privateKey: KeyObject };

/** Generates RSA keys of 2,048 bits on Node's thread pool. About 0.1 s of CPU time each. */
export async function makeAgentKeys(count: number): Promise<AgentKey[]> {
  const generate = promisify(generateKeyPair);
  const pairs = await Promise.all(Array.from({ length: count }, () => generate('rsa', { modulusLength: 2_048 })));
  return pairs.map(({ publicKey, privateKey }) => {
    return { publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }) as string, privateKey };
  });
}

/** The maximum lifetime of an agent token in the specification. */
const LIFETIME_SECONDS = 300;
/** Tokens are signed again well before they expire, so that none expires during a round. */
const FRESH_FOR_MS = 180_000;

/** Agent tokens for a list of agents, in turn. `fresh` returns tokens that are valid for at least two more minutes. */
export type TokenBatch = { fresh(): readonly string[] };

/**
 * Creates a batch of `count` tokens. Each has a different `jti`, so that a broker which cached verified tokens
 * would have to verify each of them at least once. `clock` returns milliseconds.
 */
export function createTokenBatch(agents: readonly BenchAgent[], count: number, clock: () => number): TokenBatch {
  let tokens: string[] = [];
  let signedAt = Number.NEGATIVE_INFINITY;
  return {
    fresh() {
      const now = clock();
      if (now - signedAt > FRESH_FOR_MS) {
        signedAt = now;
        tokens = Array.from({ length: count }, (_, at) =>
          signToken(present(agents[at % agents.length], 'agent'), now, at),
        );
      }
      return tokens;
    },
  };
}

const HEADER = Buffer.from(JSON.stringify({ alg: 'RS256', typ: 'JWT' })).toString('base64url');

/** Signs a token with RS256 (RFC 7518 section 3.3). */
function signToken(agent: BenchAgent, now: number, number: number): string {
  const iat = Math.floor(now / 1_000);
  const names = { agent_id: agent.agentId, owner_id: agent.ownerId, jti: `${iat}-${number}` };
  const claims = { ...names, iat, exp: iat + LIFETIME_SECONDS };
  const input = `${HEADER}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${input}.${sign('RSA-SHA256', Buffer.from(input), agent.privateKey).toString('base64url')}`;
}
