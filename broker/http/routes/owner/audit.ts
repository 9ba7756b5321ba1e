import { z } from 'zod';
import { type AuditRow, listAuditRows } from '../../../store/audit.ts';
import { pageSize, uuid } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

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

const Page = z.object({
  limit: pageSize(200, 50),
  before: uuid('the id of the last row of the page before').optional(),
});

/** GET /owner/audit: newest first. */
export const ownerAudit = route({
  method: 'GET',
  path: '/owner/audit',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.audit.list',
  summary: "The organisation's decisions, newest first.",
  query: Page,
  answers: { 200: 'A page of audit rows.' },
  errors: ['invalid_request'],
  handle: async ({ governor: { broker }, who, query: { limit, before } }) => {
    const rows = await listAuditRows(broker.store.db, who.organisationId, { limit, ...(before && { before }) });
    return json(200, { rows: rows.map(shown), next: rows.length === limit ? rows.at(-1)!.id : null });
  },
});
