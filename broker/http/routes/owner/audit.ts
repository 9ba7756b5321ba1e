/** The audit of decisions and changes, for owners. */
import { z } from 'zod';
import { sentencesOfRows } from '../../../approvals/row-sentences.ts';
import { receiptOf } from '../../../audit/receipt.ts';
import { agentNames, agentsIn, changerNames, historiesOf, standingOf } from '../../../audit/row-reading.ts';
import { exportRows, searchRows } from '../../../audit/search-rows.ts';
import type { Broker } from '../../../broker.ts';
import { describeMatched } from '../../../facts/matched-rules.ts';
import { platformNames } from '../../../facts/platform-names.ts';
import { AUDIT_CSV_HEAD, auditCsvLine } from '../../audit-csv.ts';
import {
  AUDIT_FILTER,
  AuditRowListed,
  AuditRowWithReceipt,
  auditFilter,
  auditRowShown,
  standingShown,
} from '../../audit-row.ts';
import { callHistoryShown } from '../../call-history.ts';
import { ndjson } from '../../ndjson.ts';
import { answerPieces } from '../../pieces.ts';
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
    before: uuid('`next` of the previous page').optional(),
    history: z.enum(['true']).optional().describe('`true`: each row of a held call says what became of that'),
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
    const histories = await historiesOf(services.broker, who.organisationId, query.history ? rows : []);
    const standing = await standingOf(services.broker, who.organisationId, rows);
    const nameOf = await platformNames(
      services.broker.store.db,
      who.organisationId,
      rows.map(({ platform_id }) => platform_id),
    );
    const agents = await agentNames(services.broker, who.organisationId, rows, agentsIn);
    const now = services.broker.clock();
    const listed = rows.map(async (row) => {
      const sentence = said.get(row.id);
      const call = histories.get(row.approval_id ?? '');
      return {
        ...auditRowShown(row),
        agent_names: Object.fromEntries(agentsIn(row).map((id) => [id, agents.get(id) ?? id])),
        platform_name: row.platform_id === null ? null : nameOf(row.platform_id),
        sentence: sentence === undefined ? null : shownSentence(sentence),
        standing: standingShown(standing.get(row.id)),
        rules: await describeMatched(services.compiled, who.organisationId, row.decision),
        ...(query.history && { history: call ? callHistoryShown(call, now) : null }),
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
  concurrency: { perAddress: 4, overall: 32 },
  capability: 'owner.audit.export',
  summary: 'Every final row with its receipt, oldest first, one JSON object a line; or as a table without receipts.',
  query: z.object({
    ...AUDIT_FILTER,
    after: uuid('the id of the last row that you have, to go on from there').optional(),
    format: z
      .enum(['jsonl', 'csv'], 'jsonl, or csv')
      .default('jsonl')
      .describe(
        '`jsonl`: one JSON object a line, with receipts; `csv`: a table (RFC 4180), with names of agents and owners',
      ),
  }),
  answers: {
    200: {
      description: 'The rows. An answer that breaks off is not whole.',
      schema: AuditRowWithReceipt,
      type: 'application/x-ndjson',
      also: { 'text/csv': z.string().describe('with `format=csv`; the first line has the names of the columns') },
    },
  },
  errors: ['invalid_request', 'too_many_streams'],
  handle: async (context) => {
    const { services, who, query } = context;
    const groups = exportRows(services.broker, who.organisationId, auditFilter(query), query.after);
    if (query.format === 'csv')
      return answerPieces(context, 'text/csv; charset=utf-8', table(services.broker, who.organisationId, groups));
    return ndjson(context, exported(groups));
  },
});

async function* exported(groups: ReturnType<typeof exportRows>) {
  for await (const rows of groups) yield rows.map((row) => ({ ...auditRowShown(row), receipt: receiptOf(row) }));
}

async function* table(broker: Pick<Broker, 'store'>, organisationId: string, groups: ReturnType<typeof exportRows>) {
  yield AUDIT_CSV_HEAD;
  const owners = await changerNames(broker, organisationId);
  for await (const rows of groups) {
    const agents = await agentNames(broker, organisationId, rows);
    yield rows.map((row) => auditCsvLine(row, { agents, owners })).join('');
  }
}
