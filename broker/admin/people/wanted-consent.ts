/** Which OAuth scopes a connection needs beyond those of the manifest: what agents wait for, and what was granted before. */
import type { Uses } from '../../broker.ts';
import { scopesWanted } from '../../oauth-client/wanted-scopes.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { listAccessRequests } from '../../store/access-requests.ts';
import { readStored, Texts } from '../../store/stored-json.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';

const MAX = 500;

/** Returns the platform's scopes, by our names, for which agents wait because a connection was granted less than they need. */
export async function scopesWaitingForConsent(
  { broker: { store, clock } }: Uses<'clock' | 'store'>,
  organisationId: string,
  platformId: string,
): Promise<string[]> {
  const page = { status: 'pending', limit: MAX, now: clock() } as const;
  const pending = await listAccessRequests(store.db, organisationId, page);
  const waiting = pending.filter((one) => one.platform_id === platformId && one.reason_code === 'needs_consent');
  return [...new Set(waiting.map(({ scope }) => scope))].filter((scope) => scope !== '').sort();
}

/** Returns the OAuth scopes to request beside those of the manifest: for each scope that agents wait for, one that suffices. */
export async function wantedConsent(
  services: Uses<'clock' | 'store'>,
  connection: ConnectionTable,
  { needs = {} }: Manifest,
): Promise<string[]> {
  const { organisation_id: organisationId, platform_id: platformId, upstream_scopes: granted } = connection;
  // Connecting again keeps earlier consent; disconnecting drops it.
  const needed = new Set(Object.values(needs).flat());
  const had = granted === null ? [] : readStored(Texts, granted, `upstream scopes of connection ${connection.id}`);
  const wanted = [...new Set([...had.filter((scope) => needed.has(scope)), ...scopesWanted(connection)])];
  for (const scope of await scopesWaitingForConsent(services, organisationId, platformId)) {
    const needed = needs[scope] ?? [];
    const [first] = needed;
    if (first !== undefined && !needed.some((one) => wanted.includes(one))) wanted.push(first);
  }
  return wanted;
}
