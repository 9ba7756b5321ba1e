/** Finds the agent's token in a request of a client that was not written for the broker (docs/unmodified.md, Address and token). */
import type { IncomingMessage } from 'node:http';
import type { AuthRefusal } from './principal.ts';

/** `header`: the header that held the token, in lower case. `isAccessKey`: in an AWS signature, as the access key id. */
export type RawToken = { kind: 'token'; token: string; header: string; isAccessKey?: true };

/** Headers that are read first: `X-Svc-Authorization`, so that the client's own Authorization may hold anything; then Authorization. */
const OWN_HEADER = 'x-svc-authorization';
const TOKEN = /^[A-Za-z0-9._~+/=-]+$/;
const IN_OWN = /^(?:bearer )?([A-Za-z0-9._~+/=-]+)$/i;
const IN_AUTHORIZATION = /^(bearer|token|basic) ([A-Za-z0-9._~+/=-]+)$/i;
/** AWS Signature Version 4, "Add the signature to the request": the parts are separated by commas, with spaces or without. */
const AWS_SCHEME = /^AWS4-HMAC-SHA256 +/i;
const STATIC_ACCESS_KEY = /^Credential=(abk_[A-Za-z0-9_-]{43})\//;
/** Matches a token signed by an agent (RFC 7519), or a static key, in any other header: some clients have a header of their own for their key. */
const OURS = /^(?:[A-Za-z]{1,20} )?([A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|abk_[A-Za-z0-9_-]{43})$/;

const MISSING: AuthRefusal = {
  kind: 'refused',
  code: 'missing_token',
  detail:
    'Send the token of the agent as "X-Svc-Authorization: Bearer <token>", or as the API key where your client sends it, but not in the address.',
};
/** AWS Signature Version 4, "Authenticating requests: using query parameters". */
const PRE_SIGNED = /[?&]X-Amz-Signature=/i;
const IN_ADDRESS: AuthRefusal = {
  kind: 'refused',
  code: 'missing_token',
  detail:
    'Pre-signed URLs are not accepted: anyone who reads one could act as the agent. Send the request with its key in a header, as the client does without a pre-signed URL.',
};
const MALFORMED: AuthRefusal = {
  kind: 'refused',
  code: 'invalid_token',
  detail:
    'The Authorization header must be "Bearer" or "token" and the token of the agent, or Basic with it as the password.',
};
const NO_STATIC_KEY: AuthRefusal = {
  kind: 'refused',
  code: 'invalid_token',
  detail:
    'A request that is signed for AWS needs a static key (abk_…) of the agent as its access key id, or the token of the agent in X-Svc-Authorization.',
};

/** Reads the token from any header. Whether that header is allowed depends on the platform's manifest, which is not known yet. */
export function readRawToken({
  headersDistinct,
  url = '',
}: IncomingMessage): RawToken | { kind: 'twice' } | AuthRefusal {
  for (const header of [OWN_HEADER, 'authorization']) {
    const [value, another] = headersDistinct[header] ?? [];
    if (another !== undefined) return { kind: 'twice' };
    if (value === undefined) continue;
    if (header === 'authorization' && AWS_SCHEME.test(value)) return inSignature(value);
    const token = header === OWN_HEADER ? inOwn(value) : inAuthorization(value);
    return token === undefined ? MALFORMED : { kind: 'token', token, header };
  }
  for (const [header, values = []] of Object.entries(headersDistinct)) {
    const token = values.length === 1 ? OURS.exec(values[0] ?? '')?.[1] : undefined;
    if (token !== undefined) return { kind: 'token', token, header };
  }
  return PRE_SIGNED.test(url) ? IN_ADDRESS : MISSING;
}

/**
 * Reads the token in place of the access key id of a signature. The client signs with an arbitrary secret, so the signature is ignored. Only a static
 * key is accepted, which lasts as long as access keys do: these clients read theirs once.
 */
function inSignature(value: string): RawToken | AuthRefusal {
  const parts = value.replace(AWS_SCHEME, '').split(',');
  const credentials = parts.map((part) => part.trim()).filter((part) => part.startsWith('Credential='));
  const token = credentials.length === 1 ? STATIC_ACCESS_KEY.exec(credentials[0] ?? '')?.[1] : undefined;
  return token === undefined ? NO_STATIC_KEY : { kind: 'token', token, header: 'authorization', isAccessKey: true };
}

const inOwn = (value: string): string | undefined => IN_OWN.exec(value)?.[1];

function inAuthorization(value: string): string | undefined {
  const [, scheme = '', rest = ''] = IN_AUTHORIZATION.exec(value) ?? [];
  if (scheme.toLowerCase() !== 'basic') return rest === '' ? undefined : rest;
  // RFC 7617. Some clients send their key as the user, with no password.
  const pair = Buffer.from(rest, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  const [user, password] = [pair.slice(0, colon), pair.slice(colon + 1)];
  const token = password === '' ? user : password;
  return colon < 0 || !TOKEN.test(token) ? undefined : token;
}
