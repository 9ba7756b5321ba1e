/** The name of the connected account, for display only: no decision depends on it. */
import * as client from 'openid-client';
import type { Broker } from '../broker.ts';
import type { Secret } from '../crypto/secret.ts';
import { UNVERIFIED } from './facts.ts';
import type { Registered } from './registered.ts';

const MAX_LENGTH = 200;
const TIMEOUT_MS = 10_000;
const MAX_BYTES = 256 * 1024;

/**
 * Reads the account's name from the ID token (received directly over TLS, so OpenID Connect Core section 3.1.3.7 requires no
 * signature check), from the userinfo endpoint, or from the manifest's account request. Null when unknown; never throws.
 */
export async function accountOf(
  { outbound }: Pick<Broker, 'outbound'>,
  { serverOptions, headers }: Registered,
  configuration: client.Configuration,
  accessToken: Secret,
  claims: Readonly<Record<string, unknown>> | undefined,
): Promise<string | null> {
  const named = nameIn(claims);
  if (named !== null) return named;
  if (claims !== undefined && configuration.serverMetadata().userinfo_endpoint !== undefined) {
    const person = await client
      .fetchUserInfo(configuration, accessToken.reveal(), claims.sub as string)
      .catch(() => undefined);
    const known = nameIn(person) ?? textOf(claims.sub);
    if (known !== null) return known;
  }
  if (!serverOptions.account) return textOf(claims?.sub);
  const answer = await outbound.send({
    url: new URL(serverOptions.account.url),
    method: 'GET',
    headers: {
      'user-agent': 'agent-broker',
      accept: 'application/json',
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      authorization: `Bearer ${accessToken.reveal()}`,
    },
    maxResponseBytes: MAX_BYTES,
    totalTimeoutMs: TIMEOUT_MS,
  });
  if (answer.kind === 'unreachable' || answer.status !== 200) return null;
  return accountIn(answer.body.toString('utf8'), serverOptions.account.pointer, accessToken);
}

/** Returns the account that a platform's response names, as one line; null when it names none, or when the value is the credential itself. */
export function accountIn(json: string, pointer: string, credential: Secret): string | null {
  const found = textOf(at(json, pointer));
  return found?.includes(credential.reveal()) ? null : found;
}

/** Marks an address that is not verified: the account's holder may have entered anybody's. */
function nameIn(claims: Readonly<Record<string, unknown>> | undefined): string | null {
  const email = textOf(claims?.email);
  if (email === null) return textOf(claims?.preferred_username) ?? textOf(claims?.name);
  const verified = claims?.email_verified;
  return verified === false || verified === 'false' ? `${email}${UNVERIFIED}` : email;
}

/** Returns one line without control characters, truncated, well-formed; null when the value is not a string. */
function textOf(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const line = value
    .replace(/\p{C}+/gu, ' ')
    .trim()
    .slice(0, MAX_LENGTH)
    .toWellFormed();
  return line === '' ? null : line;
}

function at(json: string, pointer: string): unknown {
  try {
    let value: unknown = JSON.parse(json);
    for (const part of pointer.slice(1).split('/')) {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof value !== 'object' || value === null) return undefined;
      value = (value as Record<string, unknown>)[name];
    }
    return value;
  } catch {
    return undefined;
  }
}
