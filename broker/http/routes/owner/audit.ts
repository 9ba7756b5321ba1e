import { UUID_PATTERN } from '../../../crypto/ids.ts';
import { type AuditRow, listAuditRows } from '../../../store/audit.ts';
import { Refusal } from '../../errors.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const MOST = 200;

/** An audit row as an owner reads it: the hashed columns, JSON opened, and whether it is signed. */
const shown = ({ instance_id: _instance, receipt: _receipt, ...row }: AuditRow) => ({
  ...row,
  created_at: new Date(row.created_at).toISOString(),
  finished_at: row.finished_at === null ? null : new Date(row.finished_at).toISOString(),
  decision: row.decision === null ? null : JSON.parse(row.decision),
  violating: row.violating === null ? null : JSON.parse(row.violating),
  flags: row.flags === null ? null : JSON.parse(row.flags),
  pii: row.pii === null ? null : JSON.parse(row.pii),
});

/** GET /owner/audit?limit=&before=: newest first; `before` is the id of the last row of the page before. */
export const ownerAudit = route({
  method: 'GET',
  path: '/owner/audit',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.audit.list',
  summary: "The organisation's decisions, newest first.",
  answers: { 200: 'A page of audit rows.' },
  errors: ['invalid_request'],
  handle: async ({ governor: { broker }, who, query }) => {
    const limit = Number(query.get('limit') ?? 50);
    const before = query.get('before')?.toLowerCase() ?? null;
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST)
      throw new Refusal('invalid_request', `limit: a whole number from 1 to ${MOST}.`);
    if (before !== null && !UUID_PATTERN.test(before)) throw new Refusal('invalid_request', 'before: the id of a row.');
    const rows = await listAuditRows(broker.store.db, who.organisationId, { limit, ...(before && { before }) });
    return json(200, { rows: rows.map(shown), next: rows.length === limit ? rows.at(-1)!.id : null });
  },
});
