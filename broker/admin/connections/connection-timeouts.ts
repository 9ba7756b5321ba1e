/** Sets how long a connection's streamed answers may be silent, and how long its requests wait for a person. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { changeConnection, findConnection } from '../../store/connections.ts';
import { loadConnection, type ReadConnection, unknownConnection } from './find-connection.ts';

/** In milliseconds; null: the default of all connections; undefined: unchanged. */
export type ConnectionTimeouts = { id: string; idleMs: number | null | undefined; waitMs: number | null | undefined };

/** In force from the next call, on every replica. Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function changeConnectionTimeouts(
  services: Changing,
  by: ChangingOwner,
  { id, idleMs, waitMs }: ConnectionTimeouts,
): Promise<ReadConnection> {
  const { db } = services.broker.store;
  const { organisation_id } = by.owner;
  const { connection, manifest } = await loadConnection(db, organisation_id, id);
  const change = { reason: 'connection_changed', platform: connection.platform_id, connection: id };
  const after = await recordInTurn(services, by, change, async (tx, note) => {
    const terms = {
      ...(idleMs !== undefined && { idle_ms: idleMs }),
      ...(waitMs !== undefined && { wait_ms: waitMs }),
    };
    await changeConnection(tx, { organisation_id, id, ...terms });
    const found = await findConnection(tx, organisation_id, id);
    if (!found) throw unknownConnection();
    note({ label: found.label, ...terms });
    return found;
  });
  return { connection: after, manifest };
}
