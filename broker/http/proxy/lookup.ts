/** Finds the connection that a raw request names, and its facts, before the request is read. */
import type { AgentPrincipal, StaticKeyUse } from '../../auth/principal.ts';
import { type RawToken, readRawToken } from '../../auth/raw-token.ts';
import { reloadPrincipal } from '../../calls/reload.ts';
import { type BodySigning, bodySigning } from '../../egress/sign-request.ts';
import type { LoadedFacts } from '../../facts/facts.ts';
import { joinUpstreamUrl } from '../../policy/endpoint.ts';
import { ALL_PLATFORMS } from '../../policy/facts.ts';
import type { Place } from '../../proxy/links.ts';
import { clientUrlOf, type RawTarget, readRawTarget } from '../../proxy/raw-target.ts';
import { Refusal } from '../errors.ts';
import type { Context } from '../route.ts';
import { baseUrlOf, waitOf } from './headers.ts';

/** A request whose connection was found. */
export type FoundConnection = {
  loaded: LoadedFacts;
  place: Place;
  token: RawToken;
  target: RawTarget;
  platform: string;
  connectionId: string;
  /** The header of the platform's own key, in lower case, if it is not Authorization. */
  keyHeader: string | undefined;
  /** Whether the platform's authentication signs bodies. */
  signing: BodySigning;
  /** How long the request waits for a person, in milliseconds. */
  waitMs: number;
};

/** The request names no connection that the agent can use: the reason, and whether owners can grant one. */
export type NoConnection = { missing: string; isGrantable: boolean };

/** Throws Refusal when the token was sent in a place where it is not allowed. */
export async function lookUpConnection(context: Context<'raw'>): Promise<FoundConnection | NoConnection> {
  const { request, services, who } = context;
  const target = readRawTarget(request.url ?? '');
  if (target === undefined)
    return { missing: 'No such address: use /proxy/<connection>/<path of the platform>.', isGrantable: false };
  const found = connectionNamed(who.rows, target.connection);
  const notIts = who.staticKey && notForKey(who.staticKey, target.connection, found?.connection_id);
  if (notIts !== undefined) return notIts;
  if (found?.platform_id == null || found.connection_id === null) {
    const { rows } = await reloadPrincipal(services, who, ALL_PLATFORMS);
    return { missing: unknown(grantedOf(rows)), isGrantable: true };
  }
  const loaded = await services.loadFacts(who.rows, services.broker.clock());
  const manifest = loaded.platform?.manifest;
  const token = readRawToken(request);
  if (token.kind !== 'token') throw new Error('a request whose token was not read');
  const isIn = token.header;
  const keyHeader = manifest?.auth.type === 'header' ? manifest.auth.name.toLowerCase() : undefined;
  if (isIn !== 'x-svc-authorization' && isIn !== 'authorization' && isIn !== keyHeader)
    throw new Refusal(
      'invalid_token',
      `The token is in ${isIn}, where this platform does not accept keys. Send it in X-Svc-Authorization.`,
    );
  if (token.isAccessKey && manifest?.auth.type !== 'aws_sigv4')
    throw new Refusal(
      'invalid_token',
      'A static key is accepted as the access key id of a signature only on platforms of AWS Signature Version 4. Send it as "Authorization: Bearer <key>".',
    );
  const proxyUrl = baseUrlOf(request.headers) ?? clientUrlOf(services.broker.proxyUrl, target.connection);
  const platform = new URL(manifest?.base_url ?? 'https://invalid.invalid');
  const [path = '', query = ''] = target.endpoint.split(/\?(.*)/s, 2);
  const place = { platform, proxyUrl, asked: joinUpstreamUrl(platform.href, { path, query }) ?? platform };
  const { platform_id: platformId, connection_id: connectionId } = found;
  const waitMs = waitOf(request.headers, found.connection_wait_ms);
  const rules = loaded.platform?.rules;
  const addresses = [manifest?.base_url, ...(rules?.baseUrls ?? []).map(({ baseUrl }) => baseUrl)];
  const isTls = addresses.every((address) => address?.startsWith('https:'));
  const signing = manifest ? bodySigning(manifest.auth, isTls) : 'none';
  return { loaded, place, token, target, platform: platformId, connectionId, keyHeader, signing, waitMs };
}

type Rows = AgentPrincipal['rows'];

const grantedOf = (rows: Rows): Rows => rows.filter((row) => row.grant_id !== null && row.connection_id !== null);

/** Finds the connection with this label or id on which the agent has a grant. */
export const connectionNamed = (rows: Rows, name: string): Rows[number] | undefined =>
  grantedOf(rows).find((row) => row.connection_label === name || row.connection_id === name);

function unknown(granted: Rows): string {
  const labels = [...new Set(granted.map((row) => row.connection_label))].sort();
  return labels.length === 0
    ? 'This agent has no grant on any connection.'
    : `This agent has no grant on a connection of this name. It has: ${labels.join(', ')}.`;
}

/**
 * Returns why a request is refused for this key; undefined when it is for the key's connection. Reveals nothing about other connections.
 * `isGrantable`: whether an owner can change that.
 *
 * @param named the connection in the address; `foundId`: id of that connection, if the agent has a grant on it
 */
function notForKey(
  key: StaticKeyUse,
  named: string,
  foundId: string | null | undefined,
): { missing: string; isGrantable: boolean } | undefined {
  if (foundId === key.connectionId) return undefined;
  const own = key.connectionLabel ?? key.connectionId;
  const isOwn = named === own || named === key.connectionId;
  const missing = isOwn
    ? 'The agent of this static key has no grant on its connection.'
    : `This static key is good for one connection only: use /proxy/${encodeURIComponent(own)}/.`;
  return { missing, isGrantable: isOwn };
}
