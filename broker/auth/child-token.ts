/**
 * The token of a child identity (specification, Authentication 4): a JWT that the broker signs with its issuing key when the
 * child is created, and that the child presents unchanged until it expires. It is valid only together with the child's row.
 */
import { type Broker, didOfAgent } from '../broker.ts';
import { sha256Base64url } from '../crypto/canonical.ts';
import { AGENT_ID_PATTERN, uuidv4 } from '../crypto/ids.ts';
import { signCompact, verifyCompact } from '../crypto/jws.ts';
import type { SigningKey } from '../crypto/key-set.ts';
import { Secret } from '../crypto/secret.ts';
import { decodeBase64url, parseSignedObject } from '../crypto/strict-decoding.ts';
import type { JsonObject } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import type { AuthRefusal } from './principal.ts';

/** Explicit typing: no other token of the issuing key is accepted as one (RFC 8725 section 3.11). */
const CHILD_TOKEN_TYPE = 'svc-child+jwt';

/** Times are in seconds since the Unix epoch. */
export type ChildClaims = {
  readonly agentId: string;
  /** Hash of `jti`, as in the child's row. */
  readonly fingerprint: string;
  readonly expiresAt: number;
};

export type NewChild = { agentId: string; ownerId: string; parentAgentId: string };

export type ReadChildToken =
  | { ok: true; claims: ChildClaims }
  /** `unproven`: the claims of a token with a wrong signature that is otherwise well-formed. */
  | { ok: false; refusal: AuthRefusal; unproven?: ChildClaims };

/** Signs a child's token, and returns it with its fingerprint for the row. `issuedAt`, `expiresAt`: seconds since the epoch. */
export function mintChildToken(
  broker: Pick<Broker, 'baseUrl' | 'did'>,
  key: SigningKey,
  child: NewChild,
  { issuedAt, expiresAt }: { issuedAt: number; expiresAt: number },
): { token: Secret; fingerprint: string } {
  const jti = uuidv4();
  const claims = {
    iss: broker.baseUrl,
    aud: broker.baseUrl,
    sub: didOfAgent(broker, child.agentId),
    agent_id: child.agentId,
    owner_id: child.ownerId,
    parent_agent_id: child.parentAgentId,
    iat: issuedAt,
    exp: expiresAt,
    jti,
  };
  const token = signCompact(key, { typ: CHILD_TOKEN_TYPE }, claims);
  return { token: new Secret(token), fingerprint: sha256Base64url(jti) };
}

/** The encoded prefix of every header written above; a token with another prefix was not issued here. */
export const CHILD_TOKEN_BEGINNING = Buffer.from(`{"alg":"ES256","typ":"${CHILD_TOKEN_TYPE}",`)
  .toString('base64url')
  .slice(0, -4);

const CACHED_TOKENS = 10_000;
/** In characters; tokens of children have some 600. */
const MAX_TOKEN = 2_048;

/**
 * Returns a reader of child tokens, which verifies the signature and the claims. A child sends the same token every time, and
 * verifying ES256 costs several times as much as reading the row, so verified tokens are cached by the hash of the whole
 * token, until the key that signed it is retired from the key set.
 */
export function childTokenReader({ keys, baseUrl }: Pick<Broker, 'keys' | 'baseUrl'>) {
  const proven = recentlyUsed<{ kid: string; claims: ChildClaims }>(CACHED_TOKENS);
  return (bearer: string): ReadChildToken => {
    if (bearer.length > MAX_TOKEN)
      return refuse('invalid_token', 'This is not a token of a child identity: it is too long.');
    const { verifyKeys } = keys.set('issuing');
    const hash = sha256Base64url(bearer);
    const known = proven.get(hash);
    if (known && verifyKeys.has(known.kid)) return { ok: true, claims: known.claims };
    const verified = verifyCompact(bearer, verifyKeys, { typ: CHILD_TOKEN_TYPE });
    if (!verified.ok) {
      if (verified.code !== 'bad_signature')
        return refuse('invalid_token', `This is not a token of a child identity of this broker: ${verified.detail}.`);
      const unproven = readClaims(payloadOf(bearer), baseUrl);
      const detail =
        "The token's signature is not by this broker's key. Present the bearer_token exactly as it was issued.";
      return { ...refuse('invalid_signature', detail), ...(unproven && { unproven }) };
    }
    const claims = readClaims(verified.payload, baseUrl);
    if (!claims) return refuse('invalid_token', 'This token of a child identity is for another broker.');
    proven.set(hash, { kid: verified.kid, claims });
    return { ok: true, claims };
  };
}

const refuse = (code: AuthRefusal['code'], detail: string): Extract<ReadChildToken, { ok: false }> => ({
  ok: false,
  refusal: { kind: 'refused', code, detail },
});

function readClaims(payload: JsonObject, baseUrl: string): ChildClaims | undefined {
  const { iss, aud, agent_id, exp, jti } = payload;
  if (iss !== baseUrl || aud !== baseUrl) return undefined;
  if (typeof agent_id !== 'string' || !AGENT_ID_PATTERN.test(agent_id)) return undefined;
  if (typeof jti !== 'string' || !Number.isSafeInteger(exp)) return undefined;
  return { agentId: agent_id, fingerprint: sha256Base64url(jti), expiresAt: exp as number };
}

function payloadOf(bearer: string): JsonObject {
  const [, payload = ''] = bearer.split('.', 2);
  const bytes = decodeBase64url(payload);
  return (bytes && parseSignedObject(bytes)) ?? {};
}
