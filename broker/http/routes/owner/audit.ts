/** What was decided and changed, as owners read it. */
import { z } from 'zod';
import { sentencesOfRows } from '../../../approvals/row-sentences.ts';
import { receiptOf } from '../../../audit/receipt.ts';
import { exportRows, searchRows } from '../../../audit/search-rows.ts';
import { matchedInWords } from '../../../facts/matched-rules.ts';
import { AUDIT_FILTER, AuditRowListed, AuditRowWithReceipt, auditFilter, auditRowShown } from '../../audit-row.ts';
import { ndjson } from '../../ndjson.ts';
import { pageSize, uuid } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { shownSentence } from '../../sentence.ts';

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
      schema: z.object({ rows: z.array(AuditRowListed), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services, who, query }) => {
    const { rows, next } = await searchRows(services.broker, who.organisationId, auditFilter(query), {
      limit: query.limit,
      before: query.before,
    });
    const said = await sentencesOfRows(services, who.organisationId, rows);
    const listed = rows.map(async (row) => {
      const sentence = said.get(row.id);
      return {
        ...auditRowShown(row),
        sentence: sentence === undefined ? null : shownSentence(sentence),
        rules: await matchedInWords(services.compiled, who.organisationId, row.decision),
      };
    });
    return json(200, { rows: await Promise.all(listed), next });
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
    return ndjson(context, exported(exportRows(services.broker, who.organisationId, auditFilter(query), query.after)));
  },
});

async function* exported(groups: ReturnType<typeof exportRows>) {
  for await (const rows of groups) yield rows.map((row) => ({ ...auditRowShown(row), receipt: receiptOf(row) }));
}
