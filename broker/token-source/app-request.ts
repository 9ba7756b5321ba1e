/** Requests authenticated as the App itself: a JWT, RS256 (GitHub, "Generating a JSON Web Token for a GitHub App"). */
import type { KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';
import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Answer } from '../egress/buffered-exchange.ts';
import type { Instant } from '../policy/facts.ts';
import type { Installation } from './app-installation.ts';
import { platformSecrets } from './platform-secret.ts';
import { APP_KEY, readRsaKey } from './rsa-key.ts';

/** Tolerates a platform clock that is behind by this much. */
const BACKDATED_S = 60;
/** The platform allows at most ten minutes, by its clock, which may be behind. */
const JWT_LIFE_S = 9 * 60;
const TIMEOUT_MS = 10_000;
/** The largest answers list a few dozen permissions and one repository. */
const MAX_BYTES = 256 * 1024;

/** Signs the App's JWT, valid for nine minutes. `appId`: its id or client id. */
export async function signAppJwt(key: KeyObject, appId: string, now: Instant): Promise<string> {
  const seconds = Math.floor(now / 1000);
  return await new SignJWT()
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(appId)
    .setIssuedAt(seconds - BACKDATED_S)
    .setExpirationTime(seconds + JWT_LIFE_S)
    .sign(key);
}

/** Returns the stored key of a platform's App, or a sentence that says why there is none and what to do. */
export async function appKeyOf(
  broker: Pick<Broker, 'store' | 'vault' | 'log'>,
  platform: Pick<Installation, 'organisationId' | 'platformId'>,
): Promise<{ ok: true; key: KeyObject } | { ok: false; detail: string }> {
  const refuse = (problem: string) => ({
    ok: false as const,
    detail: `The App of ${platform.platformId} cannot sign: its private key ${problem}. An owner applies the governance file where the key is.`,
  });
  let pem: Secret | undefined;
  try {
    pem = (await platformSecrets(broker, platform))('private_key');
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    const about = { err: error, security: true, organisation: platform.organisationId };
    broker.log.error(about, "an App's key cannot be opened");
  }
  if (pem === undefined) return refuse('is not stored, or cannot be opened');
  const read = readRsaKey(pem.reveal(), APP_KEY);
  return read.ok ? read : refuse(read.problem);
}

/** Headers of every request about tokens. `headers`: those of the platform. */
export const sharedHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  accept: 'application/vnd.github+json',
  'user-agent': 'agent-broker',
});

/** Sends a request below the installation's URL. `path`: begins with a slash, or is empty. */
export async function askAsApp(
  { outbound, clock }: Pick<Broker, 'outbound' | 'clock'>,
  { baseUrl, headers, appId, installationId, connectionId }: Installation,
  key: KeyObject,
  { path, body }: { path: string; body?: unknown },
): Promise<Answer> {
  return await outbound.send({
    url: new URL(`${baseUrl.replace(/\/$/, '')}/app/installations/${installationId}${path}`),
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...sharedHeaders(headers),
      authorization: `Bearer ${await signAppJwt(key, appId, clock())}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    // A separate socket that no call shares.
    connectionKey: `${connectionId}/app`,
    totalTimeoutMs: TIMEOUT_MS,
    idleTimeoutMs: TIMEOUT_MS,
    maxResponseBytes: MAX_BYTES,
  });
}

/** Parses the body of an answer; undefined when it is not JSON. */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
