import { createPublicKey, type KeyObject, randomBytes, verify } from 'node:crypto';
import type { Instant } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { type AgentClaims, type ParsedAgentToken, type RefusedAgentToken, refuseToken } from './agent-token.ts';

/** The registered data of the agent that a token names. */
export type RegisteredAgent = {
  readonly agentId: string;
  /** Its current and former owners: after a handover, tokens with the former owner's id stay valid, so that the agent need not be interrupted. */
  readonly ownerIds: readonly string[];
  /** RFC 7638 thumbprint of its public key. */
  readonly fingerprint: string;
  /** Allowed values of `sub`: its workload identity id, its DID, its agent id. */
  readonly acceptedSubjects: readonly string[];
};

export type VerifyOptions = {
  readonly now: Instant;
  /** The value that `aud` must have, when present. */
  readonly baseUrl: string;
};

export type VerifiedAgentToken = { ok: true; claims: AgentClaims };

export type AgentTokenVerifier = {
  /**
   * Verifies the signature with the key that is likely the agent's, so that `verify` with the same key need not repeat that.
   * Returns whether the signature matches.
   */
  prepare(token: ParsedAgentToken, key: KeyObject): boolean;
  /**
   * Verifies the signature with the agent's registered key first, then the claims. This is authentication only, not permission for
   * any call.
   */
  verify(
    token: ParsedAgentToken,
    agent: RegisteredAgent,
    key: KeyObject,
    options: VerifyOptions,
  ): VerifiedAgentToken | RefusedAgentToken;
  /** Returns the refusal of an unknown or keyless agent: as for a wrong signature, after the same work, in the same time (JW-28). */
  refuseUnknown(token: ParsedAgentToken): RefusedAgentToken;
};

/** Longest lifetime of a token in seconds, and allowed clock skew in milliseconds. */
const MAX_LIFETIME_S = 300;
const SKEW_MS = 30_000;

const WRONG_SIGNATURE =
  "The token's signature does not match the key that is registered for this agent. Sign with the agent's own private key; after a rotation, with the new one.";

/** Returns a verifier, with dummy keys for unknown agents. */
export function createAgentTokenVerifier(): AgentTokenVerifier {
  const standIns = createStandInKeys();
  const signatureBytes = createSignatureSizes();
  const prepared = new WeakMap<ParsedAgentToken, { key: KeyObject; isGood: boolean }>();
  const isSignedBy = (token: ParsedAgentToken, key: KeyObject): boolean => {
    // OpenSSL refuses a signature of another length than the modulus without any work, and the timing would reveal the key's size.
    const fits = token.signature.length === signatureBytes(key);
    return verifySignature(token, fits ? key : standIns(token.signature.length)) && fits;
  };
  return {
    prepare(token, key) {
      const done = prepared.get(token);
      if (done?.key === key) return done.isGood;
      const isGood = isSignedBy(token, key);
      prepared.set(token, { key, isGood });
      return isGood;
    },
    verify(token, agent, key, options) {
      const done = prepared.get(token);
      const isGood = done?.key === key ? done.isGood : isSignedBy(token, key);
      if (!isGood) return wrongSignature(isOtherwiseGood(token.claims, agent, options.now));
      const wrong = whatIsWrongWith(token, agent, options);
      return wrong ?? { ok: true, claims: token.claims };
    },
    refuseUnknown(token) {
      verifySignature(token, standIns(token.signature.length));
      return wrongSignature(false);
    },
  };
}

/** Checks the claims in order (RFC 7519 section 4.1); undefined when all are valid. */
function whatIsWrongWith(
  { claims, kid }: ParsedAgentToken,
  agent: RegisteredAgent,
  { now, baseUrl }: VerifyOptions,
): RefusedAgentToken | undefined {
  if (claims.agentId !== agent.agentId) return refuseToken('The claim agent_id names another agent.');
  if (kid !== undefined && kid !== agent.agentId && kid !== agent.fingerprint) {
    return refuseToken("The kid in the header must be the agent's id or its key's thumbprint, or absent.");
  }
  if (!agent.ownerIds.includes(claims.ownerId)) return refuseToken("The claim owner_id is not the agent's owner.");
  if (claims.subject !== undefined && !agent.acceptedSubjects.includes(claims.subject)) {
    return refuseToken("The claim sub, when present, must be the agent's id, its DID or its workload identity id.");
  }
  if (claims.audience !== undefined && !claims.audience.includes(baseUrl)) {
    return refuseToken(`The claim aud, when present, must name this broker: ${baseUrl}`);
  }
  if (claims.expiresAt <= claims.issuedAt) return refuseToken('The claim exp must be later than iat.');
  if (claims.expiresAt - claims.issuedAt > MAX_LIFETIME_S) {
    return refuseToken(`The token may live for ${MAX_LIFETIME_S} seconds at most (exp - iat).`);
  }
  if (isAhead(claims.issuedAt, now)) return refuseToken("The claim iat is in the future: check this machine's clock.");
  if (claims.notBefore !== undefined && isAhead(claims.notBefore, now)) {
    return refuseToken('The token is not valid yet (nbf).');
  }
  if (isPast(claims.expiresAt, now)) {
    const detail = "The token has expired. Sign a new one; if it is new, check this machine's clock.";
    return { ok: false, code: 'token_expired', detail, countsAsStrike: false };
  }
  return undefined;
}

const isAhead = (seconds: number, now: Instant): boolean => seconds * 1000 > now + SKEW_MS;
const isPast = (seconds: number, now: Instant): boolean => seconds * 1000 + SKEW_MS < now;

/** DOS-01: only a fresh token with the right owner id can bring an agent's breaker closer to opening. */
function isOtherwiseGood(claims: AgentClaims, agent: RegisteredAgent, now: Instant): boolean {
  const lifetime = claims.expiresAt - claims.issuedAt;
  return (
    claims.agentId === agent.agentId &&
    agent.ownerIds.includes(claims.ownerId) &&
    lifetime > 0 &&
    lifetime <= MAX_LIFETIME_S &&
    !isAhead(claims.issuedAt, now) &&
    !isPast(claims.expiresAt, now)
  );
}

/** Returns the length of a key's signatures, cached because Node recomputes a key's details on each access. */
function createSignatureSizes(): (key: KeyObject) => number {
  const sizes = new WeakMap<KeyObject, number>();
  return (key) => {
    const size = sizes.get(key) ?? Math.ceil(present(key.asymmetricKeyDetails?.modulusLength, 'modulus') / 8);
    sizes.set(key, size);
    return size;
  };
}

function verifySignature({ signingInput, signature }: ParsedAgentToken, key: KeyObject): boolean {
  return verify('sha256', Buffer.from(signingInput, 'latin1'), key, signature);
}

const wrongSignature = (countsAsStrike: boolean): RefusedAgentToken => ({
  ok: false,
  code: 'invalid_signature',
  detail: WRONG_SIGNATURE,
  countsAsStrike,
});

/**
 * Dummy keys, so that verification takes the same time whether the agent exists or not. The modulus need not be a product of
 * two primes. Its high bits are ones, so that no signature is larger than it and skips the work; the rest is random, so that
 * it cannot be factored to sign with it.
 */
function createStandInKeys(): (signatureBytes: number) => KeyObject {
  const keys = new Map<number, KeyObject>();
  return (signatureBytes) => {
    // Signatures of other lengths match no agent's key: they fail immediately, whichever agent the token names.
    const bytes = Math.min(Math.max(signatureBytes, 256), 512);
    let key = keys.get(bytes);
    if (key === undefined) {
      const n = randomBytes(bytes).fill(0xff, 0, 16);
      n.writeUInt8(n.readUInt8(bytes - 1) | 1, bytes - 1);
      key = createPublicKey({ key: { kty: 'RSA', n: n.toString('base64url'), e: 'AQAB' }, format: 'jwk' });
      keys.set(bytes, key);
    }
    return key;
  };
}
