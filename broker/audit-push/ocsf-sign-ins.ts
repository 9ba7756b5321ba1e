/** Sign-ins and sign-outs of owners, as events of the class Authentication (3002). */
import type { AuditRow } from '../store/audit.ts';
import { actorOf, type Json, type Named, type OcsfSource, textOf } from './ocsf-parts.ts';

const LOGOFF: Named = [2, 'Logoff'];
/** Reasons of audit rows that become events of the class Authentication. */
export const SIGN_INS: ReadonlyMap<string, Named> = new Map<string, Named>([
  ['owner_signed_in', [1, 'Logon']],
  ['owner_signed_out', LOGOFF],
  ['owner_sessions_ended', LOGOFF],
]);
const BY_PROVIDER = { auth_protocol_id: 4, auth_protocol: 'OpenID' };
const PROTOCOLS: ReadonlyMap<string, Json> = new Map([
  ['provider', BY_PROVIDER],
  ['passkey', { auth_protocol_id: 99, auth_protocol: 'WebAuthn' }],
  ['link', { auth_protocol_id: 99, auth_protocol: 'Link' }],
]);

/** Returns the members specific to the class. When the provider ended sessions, no person did it: `owner` is the owner of those sessions. */
export function authentication(
  row: AuditRow,
  [activity_id, activity_name]: Named,
  change: Json,
  source: OcsfSource,
): Json {
  const uid = textOf(change.owner) ?? textOf(change.by);
  const session = textOf(change.session);
  const from = row.reason === 'owner_signed_in' ? /^from (\S+)$/.exec(row.detail ?? '')?.[1] : undefined;
  return {
    category_uid: 3,
    category_name: 'Identity & Access Management',
    class_uid: 3002,
    class_name: 'Authentication',
    activity_id,
    activity_name,
    type_uid: 300_200 + activity_id,
    type_name: `Authentication: ${activity_name}`,
    message: row.reason,
    user: uid === undefined ? { name: 'unknown', type_id: 0, type: 'Unknown' } : { uid, type_id: 1, type: 'User' },
    actor: { user: actorOf(row, change) },
    session: session === undefined ? undefined : { uid: session, issuer: source.issuer },
    service: { name: 'Agent Broker', uid: source.issuer },
    is_remote: true,
    src_endpoint: from === undefined ? undefined : { ip: from },
    ...(row.reason === 'owner_sessions_ended' ? BY_PROVIDER : PROTOCOLS.get(textOf(change.sign_in) ?? '')),
  };
}
