// Computes the hash of an audit row, to check that the row is unchanged since its receipt was signed (docs/receipts.md, "The row hash").
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { sha256Hex } from '/console/receipt/verify.js';

/** The columns that the hash covers, in alphabetical order. */
const COLUMNS = /** @type {const} */ ([
  'agent_id',
  'agent_public_id',
  'agent_reason',
  'approval_id',
  'connection_id',
  'correlation_id',
  'created_at',
  'decision',
  'detail',
  'finished_at',
  'flags',
  'id',
  'kind',
  'method',
  'organisation_id',
  'path',
  'pii',
  'platform_id',
  'reason',
  'result',
  'scope',
  'session_id',
  'upstream_status',
  'violating',
]);

/**
 * Returns the hash of a row as recorded now, in hexadecimal.
 *
 * @param {AuditRow} row
 */
export function rowHash(row) {
  const stored = COLUMNS.map((name) => {
    const value = row[name];
    if (value !== null && (name === 'created_at' || name === 'finished_at')) return [name, Date.parse(String(value))];
    return [name, typeof value === 'object' && value !== null ? JSON.stringify(value) : value];
  });
  return sha256Hex(JSON.stringify(Object.fromEntries(stored)));
}
