/** What was decided and changed, as owners read it. */
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { receiptOf } from '../../../audit/receipt.ts';
import { type AuditFilter, type Found, findAuditRows } from '../../../store/audit-search.ts';
import type { Db } from '../../../store/store.ts';
import { AUDIT_FILTER, AuditRowShown, AuditRowWithReceipt, auditFilter, auditRowShown } from '../../audit-row.ts';
import { ndjson } from '../../ndjson.ts';
import { pageSize, uuid } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** How often the store is asked for one page before it is answered with what was found. */
const MOST_LOOKS = 10;
const EXPORT_PAGE = 100;

/** GET /owner/audit: newest first. */
export const ownerAudit = route({
  method: 'GET',
  path: '/owner/audit',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.audit.list',
  summary: "The organisation's decisions and changes, newest first.",
  query: z.object({
    ...AUDIT_FILTER,
    limit: pageSize(200, 50),
    before: uuid('go on from here: `next` of the page before').optional(),
  }),
  answers: {
    200: {
      description:
        'A page of rows. With a filter it may be short, or empty, and not the last one: go on while `next` is not null.',
      schema: z.object({ rows: z.array(AuditRowShown), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query }) => {
    const { db } = broker.store;
    const page: Found = { rows: [], reached: query.before ?? null };
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const found = await findAuditRows(db, who.organisationId, auditFilter(query), {
        order: 'newest_first',
        beyond: page.reached ?? undefined,
        limit: query.limit - page.rows.length,
      });
      page.rows.push(...found.rows);
      page.reached = found.reached;
      if (found.reached === null || page.rows.length === query.limit) break;
      // SQLite answers at once: let others have their turn.
      await setImmediate();
    }
    return json(200, { rows: page.rows.map(auditRowShown), next: page.reached });
  },
});

/** GET /owner/audit/export: oldest first, each row with its receipt. */
export const exportAudit = route({
  method: 'GET',
  path: '/owner/audit/export',
  auth: 'owner',
  role: 'viewer',
  atOnce: { perAddress: 4, inAll: 32 },
  capability: 'owner.audit.export',
  summary: 'Every final row with its receipt, oldest first, one JSON object a line.',
  query: z.object({ ...AUDIT_FILTER, after: uuid('go on from here: the id of the last row that you have').optional() }),
  answers: {
    200: {
      description: 'The rows. An answer that breaks off is not whole.',
      schema: AuditRowWithReceipt,
      type: 'application/x-ndjson',
    },
  },
  errors: ['invalid_request', 'too_many_streams'],
  handle: async (context) => {
    const { services, who, query } = context;
    const { store, clock } = services.broker;
    // What comes while it is read is the next export's: otherwise a busy broker's would have no end.
    const until = Math.min(query.until ?? Number.POSITIVE_INFINITY, clock() + 1);
    const filter = { ...auditFilter(query), until, final: true };
    return ndjson(context, exported(store.db, who.organisationId, filter, query.after));
  },
});

async function* exported(db: Db, organisationId: string, filter: AuditFilter, after: string | undefined) {
  let beyond = after;
  do {
    const found: Found = await findAuditRows(db, organisationId, filter, {
      order: 'oldest_first',
      beyond,
      limit: EXPORT_PAGE,
    });
    yield found.rows.map((row) => ({ ...auditRowShown(row), receipt: receiptOf(row) }));
    beyond = found.reached ?? undefined;
    await setImmediate();
  } while (beyond !== undefined);
}
