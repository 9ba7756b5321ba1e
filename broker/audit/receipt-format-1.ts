/**
 * The payload of receipts with `receipt_format` 1, derived from their rows. Frozen: exactly these bytes are signed, so any change here
 * breaks every receipt of this format. A change needs a new format, in a file beside this one.
 */
import { sha256Hex } from '../crypto/canonical.ts';
import type { AuditRow } from '../store/audit.ts';
import { membersOf, openMembers } from '../store/open-json.ts';

const text = JSON.stringify;

/**
 * The JSON text of a final row's payload; `issuer`: the broker's DID. It never carries bodies, the query, addresses (of people
 * or machines), or the agent's own words: those only as a hash, keyed with the row's random id, because a short sentence can
 * be guessed.
 */
export function payloadText1(row: AuditRow, issuer: string): string {
  // Concatenated as text: columns that hold JSON are inserted as they are, at a quarter of the cost of parsing them.
  const { id, agent_public_id: agent } = row;
  const flags = row.kind === 'event' || row.approval_id !== null ? openMembers(row.flags) : {};
  const event = row.kind === 'event' ? ',"kind":"event"' : '';
  const change = row.kind === 'event' && flags.change ? `,"change":${text(flags.change)}` : '';
  const approval =
    row.approval_id === null ? 'null' : text({ approval_id: row.approval_id, ...membersOf(flags.approval) });
  const reason = row.agent_reason === null ? null : sha256Hex(`${id}\n${row.agent_reason}`);
  return (
    `{"iss":${text(issuer)},"jti":${text(id)},"iat":${Math.floor((row.finished_at ?? row.created_at) / 1000)}` +
    `,"sub":${agent ? text(`${issuer}:agents:${agent}`) : null},"agent":${text(agent)}` +
    `,"organisation":${text(row.organisation_id)},"platform":${text(row.platform_id)}` +
    `,"connection":${text(row.connection_id)},"scope":${text(row.scope)},"method":${text(row.method)}` +
    `,"path":${text(row.path)}${event}${change},"result":${text(row.result)},"reason":${text(row.reason)}` +
    `,"decision":${row.decision},"approval":${approval},"session_id":${text(row.session_id)}` +
    `,"pii":${row.pii ?? '{"request":null,"response":null}'},"upstream_status":${row.upstream_status}` +
    `${reason === null ? '' : `,"agent_reason_hash":"${reason}"`},"row_hash":${text(row.row_hash)}}`
  );
}
