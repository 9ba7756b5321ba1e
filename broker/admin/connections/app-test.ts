/** Describes an App's installation to an owner before agents use it: its account, and the permissions that agents would lack. */
import { z } from 'zod';
import type { Broker } from '../../broker.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { listGrants } from '../../store/agents.ts';
import { readScopes } from '../../store/stored-terms.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { Installation } from '../../token-source/app-installation.ts';
import { appKeyOf, askAsApp, jsonOf } from '../../token-source/app-request.ts';

const Installed = z.looseObject({
  account: z.looseObject({ login: z.string().regex(/^[\w-]{1,100}$/) }),
  repository_selection: z.enum(['all', 'selected']).optional(),
  permissions: z.record(z.string(), z.string()),
});

const RANK: Readonly<Record<string, number>> = { read: 1, write: 2, admin: 3 };

/** Returns a sentence about the installation; empty when the platform does not report it. Of the platform's texts it contains names only. */
export async function describeInstallation(
  broker: Pick<Broker, 'clock' | 'log' | 'store' | 'vault' | 'outbound'>,
  installation: Installation,
  connection: ConnectionTable,
  manifest: Manifest,
): Promise<string> {
  const signer = await appKeyOf(broker, installation);
  if (!signer.ok) return signer.detail;
  const answer = await askAsApp(broker, installation, signer.key, { path: '' });
  const read = answer.kind === 'answer' && answer.status === 200 ? Installed.safeParse(jsonOf(answer.body)) : undefined;
  if (!read?.success) return '';
  const { account, repository_selection: selection, permissions } = read.data;
  const at = `The App is installed at ${account.login}, for ${selection === 'selected' ? 'some' : 'all'} repositories.`;
  // Permissions for single operations are optional (`app_operations`): a call that lacks one gets an error that says so.
  const lacking = [...(await scopesHeld(broker, connection))].flatMap((scope) =>
    Object.entries(manifest.app_permissions?.[scope] ?? {}).flatMap(([name, one]) => {
      const access = typeof one === 'string' ? one : one.access;
      const isHeld = name === 'metadata' || (RANK[permissions[name] ?? ''] ?? 0) >= (RANK[access] ?? 0);
      // A permission that is needed only together with another scope is lacking only if that scope is granted, too.
      return isHeld || typeof one !== 'string' ? [] : [`${name}: ${access} (${scope})`];
    }),
  );
  if (lacking.length === 0) return at;
  return `${at} Agents hold scopes that it has no permission for: ${lacking.join(', ')}. Change the App's permissions, and accept them at ${account.login}.`;
}

/** Returns the scopes of all grants that use a connection. */
async function scopesHeld({ store }: Pick<Broker, 'store'>, connection: ConnectionTable): Promise<Set<string>> {
  const grants = (await listGrants(store.db, connection.organisation_id)).filter(
    ({ platform_id: platform, connection_id: id }) =>
      platform === connection.platform_id && (id === connection.id || (id === null && connection.is_default === 1)),
  );
  return new Set(grants.flatMap(({ scopes, id }) => readScopes(scopes, id)).toSorted());
}
