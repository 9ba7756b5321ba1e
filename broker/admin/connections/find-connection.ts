/** Loads connections and their platforms' manifests, for owners. */
import { loadManifests } from '../../facts/stored-manifests.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { present } from '../../runtime/present.ts';
import { findConnection, listConnections } from '../../store/connections.ts';
import type { Db } from '../../store/store.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import { ChangeRefused } from '../refused.ts';

/** A connection with the manifest of its platform. */
export type ReadConnection = { connection: ConnectionTable; manifest: Manifest };

/** Lists all connections of an organisation, oldest first; credentials stay sealed. */
export async function readConnections(db: Db, organisationId: string): Promise<ReadConnection[]> {
  const manifests = await loadManifests(db, organisationId);
  const connections = await listConnections(db, organisationId);
  return connections.map((connection) => ({
    connection,
    manifest: present(manifests.get(connection.platform_id), 'manifest'),
  }));
}

export const unknownConnection = () => new ChangeRefused('not_found', 'The organisation has no such connection.');

/** Loads one connection. Throws ChangeRefused not_found. */
export async function loadConnection(db: Db, organisationId: string, id: string): Promise<ReadConnection> {
  const connection = await findConnection(db, organisationId, id);
  if (!connection) throw unknownConnection();
  return { connection, manifest: await loadManifest(db, organisationId, connection.platform_id) };
}

/** Loads the manifest of a platform. Throws ChangeRefused invalid_request when there is none. */
export async function loadManifest(db: Db, organisationId: string, platformId: string): Promise<Manifest> {
  const manifests = await loadManifests(db, organisationId);
  const found = manifests.get(platformId);
  if (found) return found;
  const known = [...manifests.keys()].join(', ');
  throw new ChangeRefused(
    'invalid_request',
    `platform: the organisation has none of this id. It has: ${known || 'none yet'}.`,
  );
}
