import { AGENT_ID_PATTERN, UUID_PATTERN } from '../crypto/ids.ts';
import { decodeBase64url, parseSignedObject } from '../crypto/strict-decoding.ts';
import type { JsonObject, JsonValue } from '../policy/facts.ts';

/** The claims of an agent token (specification, Authentication 2). Times are in seconds since the Unix epoch. */
export type AgentClaims = {
  readonly agentId: string;
  /** In lower case. */
  readonly ownerId: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore?: number;
  readonly sessionId?: string;
  readonly subject?: string;
  readonly audience?: readonly string[];
};

/** A well-formed token; its signature and claims are not verified yet. */
export type ParsedAgentToken = {
  readonly kid?: string;
  readonly claims: AgentClaims;
  /** The signing input: encoded header and payload, exactly as received. */
  readonly signingInput: string;
  readonly signature: Buffer;
};

export type RefusedAgentToken = {
  ok: false;
  code: 'invalid_token' | 'token_expired' | 'invalid_signature';
  /** One sentence for the agent's developer; contains nothing of the token. */
  detail: string;
  /** An otherwise valid token of this agent with a wrong signature: counts towards the breaker (DOS-01). */
  countsAsStrike: boolean;
};

/** In characters, before anything is decoded (JW-20). */
const MAX_TOKEN = 8192;
/** Allowed form of a session id. */
export const SESSION_ID = /^[A-Za-z0-9._~:@/+=-]{1,128}$/;
/** Header parameters by which a token could supply its own key or change how it is verified (JW-06). */
const FORBIDDEN_HEADERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64'];

/**
 * Parses an agent token from the text after `Bearer `: size, format, header and claims, everything that can be checked
 * without knowing the agent, so that no key and no row is read for a malformed token. Never throws.
 */
export function parseAgentToken(bearer: string): { ok: true; token: ParsedAgentToken } | RefusedAgentToken {
  if (bearer.length > MAX_TOKEN) return refuseToken(`The token is longer than ${MAX_TOKEN} characters.`);
  const segments = bearer.split('.', 4);
  if (segments.length !== 3) return refuseToken('The token is not a JWT: it must have three parts, separated by dots.');
  const [headerBytes, payloadBytes, signature] = segments.map(decodeBase64url);
  if (headerBytes === undefined || payloadBytes === undefined) {
    return refuseToken('The token is not encoded in base64url without padding.');
  }
  const header = parseSignedObject(headerBytes);
  if (header === undefined) return refuseToken('The token has a header that is not a JSON object with unique names.');
  const wrongHeader = whatIsWrongWithHeader(header);
  if (wrongHeader !== undefined) return refuseToken(wrongHeader);
  if (signature === undefined) return refuseToken('The token has no signature in base64url without padding.');
  const payload = parseSignedObject(payloadBytes);
  if (payload === undefined) return refuseToken('The token has claims that are not a JSON object with unique names.');
  const claims = readClaims(payload);
  if (typeof claims === 'string') return refuseToken(`${claims}.`);
  const signingInput = bearer.slice(0, bearer.lastIndexOf('.'));
  const { kid } = header;
  return {
    ok: true,
    token: { ...(isText(kid) && { kid }), claims, signingInput, signature },
  };
}

function whatIsWrongWithHeader({ alg, typ, kid, ...others }: JsonObject): string | undefined {
  if (alg !== 'RS256') return 'The token must be signed with RS256 (alg in its header).';
  if (typ !== undefined && (typeof typ !== 'string' || typ.toUpperCase() !== 'JWT')) {
    return 'The token is of another type: typ in its header must be JWT, or absent.';
  }
  if (kid !== undefined && typeof kid !== 'string') return 'The kid in the header of the token must be a string.';
  const forbidden = FORBIDDEN_HEADERS.find((name) => Object.hasOwn(others, name));
  if (forbidden === undefined) return undefined;
  return `The header of the token has ${forbidden}, which is not accepted: only the key registered for the agent counts.`;
}

/** Returns the typed claims, or what is wrong with one of them. Checked in the order of the specification. */
function readClaims(payload: JsonObject): AgentClaims | string {
  const { agent_id, owner_id, iat, exp, nbf, session_id, sub, aud } = payload;
  const seconds = 'must be a whole number of seconds since 1970';
  if (!isText(agent_id) || !AGENT_ID_PATTERN.test(agent_id)) return "The claim agent_id must be the agent's id, agt_…";
  if (!isText(owner_id) || !UUID_PATTERN.test(owner_id))
    return "The claim owner_id must be the uuid of the agent's owner";
  if (!isSeconds(iat)) return `The claim iat ${seconds}`;
  if (!isSeconds(exp)) return `The claim exp ${seconds}`;
  if (nbf !== undefined && !isSeconds(nbf)) return `The claim nbf, when present, ${seconds}`;
  if (session_id !== undefined && !(isText(session_id) && SESSION_ID.test(session_id))) {
    return 'The claim session_id, when present, must be 1 to 128 letters, digits or ._~:@/+=-';
  }
  if (sub !== undefined && !isText(sub)) return 'The claim sub, when present, must be a string';
  const audience = isText(aud) ? [aud] : aud;
  if (audience !== undefined && !(Array.isArray(audience) && audience.every(isText))) {
    return 'The claim aud, when present, must be a string or a list of strings';
  }
  return {
    agentId: agent_id,
    ownerId: owner_id.toLowerCase(),
    issuedAt: iat,
    expiresAt: exp,
    ...(nbf !== undefined && { notBefore: nbf }),
    ...(session_id !== undefined && { sessionId: session_id }),
    ...(sub !== undefined && { subject: sub }),
    ...(audience !== undefined && { audience }),
  };
}

const isText = (value: JsonValue | undefined): value is string => typeof value === 'string';
/** Rejects fractions, which JWT libraries do not write, and 1e999, which parses to Infinity. */
const isSeconds = (value: JsonValue | undefined): value is number => Number.isSafeInteger(value);

/** Returns the refusal of a token that is malformed, or not valid now. */
export function refuseToken(detail: string): RefusedAgentToken {
  return { ok: false, code: 'invalid_token', detail, countsAsStrike: false };
}
