/** Parts of OCSF events that all classes share. */
import type { AuditRow } from '../store/audit.ts';

/** `issuer`: the broker's DID. `chain`: the name of the receipt log. */
export type OcsfSource = { issuer: string; chain: string };

export type Json = Record<string, unknown>;
export type Named = readonly [id: number, caption: string];

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** Returns the record without members that are null or undefined. */
export const known = (record: Json): Json =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined && value !== null));

/** Returns the actor: for a call the agent; for an event the author of the change, or the agent that it is about, or the broker. */
export function actorOf(row: AuditRow, change: Json): Json {
  const by = textOf(change.by);
  const agent = { uid: row.agent_id, name: row.agent_public_id, type_id: 4, type: 'Service' };
  if (row.kind === 'action' && (row.agent_id ?? row.agent_public_id) !== null) return known(agent);
  if (by === 'operator' || by === 'broker') return { name: by, type_id: 3, type: 'System' };
  if (by !== undefined && change.how === 'pipeline') return { uid: by, type_id: 4, type: 'Service' };
  if (by !== undefined) return { uid: by, type_id: 1, type: 'User' };
  return row.agent_id === null ? { name: 'broker', type_id: 3, type: 'System' } : known(agent);
}

/** Returns the row's hash, which its receipt signs and its entry in the receipt log covers. */
export function attestationOf(
  { id, row_hash, receipt, finished_at, created_at }: AuditRow,
  { issuer, chain }: OcsfSource,
): Json {
  return known({
    uid: id,
    authority_uid: issuer,
    chain_uid: chain,
    fingerprint: {
      algorithm_id: 3,
      algorithm: 'SHA-256',
      encoding_id: 1,
      encoding: 'Hex',
      serialization_id: 2,
      serialization: 'JCS',
      value: row_hash ?? '',
    },
    signatures:
      receipt === null
        ? undefined
        : [
            {
              algorithm_id: 3,
              algorithm: 'ECDSA',
              serialization_id: 3,
              serialization: 'JWS',
              created_time: finished_at ?? created_at,
            },
          ],
  });
}

/** The product that sends the events. */
export const productOf = ({ issuer }: OcsfSource) => ({
  name: 'Agent Broker',
  vendor_name: 'Agent Broker',
  uid: issuer,
});
