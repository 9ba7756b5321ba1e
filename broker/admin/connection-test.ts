/** Tests a connection with one harmless GET of the platform's base URL. */

import { type Changing, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { Broker } from '../broker.ts';
import { restPlatform } from '../calls/forward.ts';
import type { TokenServices } from '../calls/token-renewal.ts';
import { buildRequest } from '../egress/rest.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { ConnectionTable } from '../store/schema.ts';
import { describeInstallation } from './app-test.ts';
import { loadConnection } from './find-connection.ts';
import { freshCredential } from './fresh-credential.ts';

/** `detail`: our own words; of the platform's nothing but its status. `sent`: whether it may have been asked at all. */
export type ConnectionTest = { ok: boolean; upstreamStatus: number | null; detail: string; sent: boolean };

/** Timeout, shorter than that of a call, because an owner is waiting. */
const PATIENCE_MS = 15_000;
const MAX_BYTES = 1024 * 1024;

/**
 * Asks the platform, with the credential, through the guarded way out; on record, because it used the credential. A token that is
 * over is refreshed; else nothing changes. Throws ChangeRefused; AuditUnavailable.
 */
export async function tryConnection(
  services: Changing & TokenServices,
  by: ChangingOwner,
  id: string,
): Promise<ConnectionTest> {
  const { connection, manifest } = await loadConnection(services.broker.store.db, by.owner.organisation_id, id);
  const tested = await testConnection(services, connection, manifest);
  const change = { reason: 'connection_tested', platform: connection.platform_id, connection: id };
  if (tested.sent)
    await recordChange(services, by, change, async (_tx, note) =>
      note({ label: connection.label, ok: tested.ok, upstream_status: tested.upstreamStatus }),
    );
  return tested;
}

async function testConnection(
  services: TokenServices,
  connection: ConnectionTable,
  manifest: Manifest,
): Promise<ConnectionTest> {
  const unsent = (detail: string): ConnectionTest => ({ ok: false, upstreamStatus: null, detail, sent: false });
  const fresh = await freshCredential(services, connection, manifest);
  if (!fresh.ok) return unsent(fresh.detail);
  const { credential } = fresh;
  const built = buildRequest(...addressOf(manifest), credential.secret);
  if (!built.ok)
    return unsent(
      built.error === 'credential_malformed'
        ? 'The stored secret cannot be sent: replace it.'
        : 'The base address of the platform cannot be asked.',
    );
  const { oauthScopes, ...tested } = await ask(services.broker, { ...built.request, connectionKey: connection.id });
  const { installation } = fresh;
  const more = installation
    ? await describeInstallation(services.broker, installation, connection, manifest)
    : excessOf(oauthScopes, manifest);
  return { ...tested, detail: more === '' ? tested.detail : `${tested.detail} ${more}` };
}

/** With this scope of GitHub's, a token writes what runs with a repository's secrets. */
const RISKY = 'workflow';

/** GitHub says in each answer what a personal access token may do ("Scopes for OAuth apps", X-OAuth-Scopes). */
function excessOf(oauthScopes: string, { needs = {} }: Manifest): string {
  const isKnown = Object.values(needs).some((scopes) => scopes.includes(RISKY));
  if (!isKnown || !oauthScopes.split(/[ ,]+/).includes(RISKY)) return '';
  return `Warning: the token has the scope "${RISKY}", so whatever agent may push can change workflows, which run with the repository's secrets. Give the connection a token without it, or an App.`;
}

/** The base address itself, as it stands in the manifest. */
function addressOf(manifest: Manifest): [Parameters<typeof buildRequest>[0], Parameters<typeof buildRequest>[1]] {
  const call = { method: 'GET', endpoint: { path: '/', query: '' }, headers: {} } as const;
  return [{ ...restPlatform(manifest), wholeAddress: true }, call];
}

async function ask(
  broker: Broker,
  request: Parameters<Broker['outbound']['send']>[0],
): Promise<ConnectionTest & { oauthScopes: string }> {
  const answer = await broker.outbound.send({ ...request, totalTimeoutMs: PATIENCE_MS, maxResponseBytes: MAX_BYTES });
  if (answer.kind === 'unreachable')
    return { ok: false, upstreamStatus: null, detail: answer.detail, sent: answer.sent, oauthScopes: '' };
  const oauthScopes = [answer.headers['x-oauth-scopes'] ?? ''].flat().join(',');
  return { ...judge(answer.status), upstreamStatus: answer.status, sent: true, oauthScopes };
}

function judge(status: number): Pick<ConnectionTest, 'ok' | 'detail'> {
  const at = `The platform answered ${status} at its base address`;
  if (status === 401) return { ok: false, detail: `${at}: it refused the credential. Replace it.` };
  if (status === 403)
    return { ok: false, detail: `${at}: it refused the credential, or this address to everybody. A real call tells.` };
  if (status >= 500) return { ok: false, detail: `${at}: it was reached, but failed.` };
  if (status < 300) return { ok: true, detail: `${at}: it was reached, and did not refuse the credential.` };
  if (status < 400) return { ok: false, detail: `${at}: a redirect, which calls do not follow. Check base_url.` };
  return {
    ok: true,
    detail: `${at}: it was reached, and did not refuse the credential; there is nothing more to see.`,
  };
}
