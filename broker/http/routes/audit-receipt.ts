import { z } from 'zod';
import { receiptOf } from '../../audit/receipt.ts';
import { readRow } from '../../audit/search-rows.ts';
import { storedUuid } from '../../crypto/ids.ts';
import { findInclusion } from '../../receipt-log/find-place.ts';
import { bearerChallenge } from '../bearer-challenge.ts';
import { Refusal } from '../errors.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const Inclusion = z
  .object({
    index: z.int().describe('the place of the row in the log'),
    size: z.int().describe('of the tree that the proof is for'),
    proof: z.array(z.string()).describe('audit path from the leaf to the root (RFC 9162 section 2.1.3), in base64'),
    checkpoint: z.string().describe('the signed head of that tree (C2SP tlog-checkpoint)'),
  })
  .describe('proof that the row is in the receipt log; absent until it is, which takes some seconds')
  .meta({ id: 'ReceiptInclusion' });

const Receipt = z
  .object({
    audit_id: z.guid(),
    kid: z.string(),
    receipt: z.string().describe('compact JWS: ES256, typ svc-receipt+jwt'),
    jwks_url: z.url().describe('the keys that verify it'),
    did: z.string().describe("the broker's own DID"),
    verify_hint: z.string().optional(),
    inclusion: Inclusion.optional(),
  })
  .meta({ id: 'AuditReceipt' });

/** GET /v1/audit/{id}/receipt (specification, Audit receipts). */
export const auditReceipt = route({
  method: 'GET',
  path: '/v1/audit/{id}/receipt',
  auth: 'agent_or_owner',
  role: 'viewer',
  limit: { name: 'receipts', perMinute: 600, per: 'agent' },
  capability: 'audit.receipt',
  summary: 'The signed receipt of one decision.',
  headers: { Accept: { description: '`application/jose` for the bare compact JWS.', example: 'application/json' } },
  params: { id: z.guid().describe('the audit_id of the decision') },
  answers: {
    200: {
      description: 'The receipt, as JSON or as the bare compact JWS.',
      schema: Receipt,
      also: { 'application/jose': z.string().describe('compact JWS: ES256, typ svc-receipt+jwt') },
      headers: ['Vary'],
    },
  },
  errors: ['not_your_row', 'not_found', 'rate_limited'],
  handle: async ({ services: { broker }, who, params, request }) => {
    const organisationId = who.kind === 'agent' ? who.agent.organisation_id : who.organisationId;
    const row = await readRow(broker, organisationId, storedUuid(params.id));
    if (row && who.kind === 'agent' && row.agent_id !== who.agent.id)
      throw new Refusal('not_your_row', 'An agent may fetch the receipts of its own calls only.', {
        headers: bearerChallenge(),
      });
    const receipt = row && receiptOf(row);
    if (!receipt)
      throw new Refusal(
        'not_found',
        'There is no such row, or it was deleted after its retention, or it has no receipt: its call has no outcome yet, or it is of a breaker transition or a connect event.',
      );
    if (prefersJose(request.headers.accept))
      return { status: 200, type: 'application/jose', headers: { Vary: 'Accept' }, body: receipt };
    const inclusion = await findInclusion(broker, row);
    const jwksUrl = `${broker.baseUrl}/.well-known/svc-receipt-keys.json`;
    return json(
      200,
      {
        audit_id: row.id,
        kid: row.receipt_kid,
        receipt,
        jwks_url: jwksUrl,
        did: broker.did,
        verify_hint: `Save the key set of jwks_url once, then: agent-broker verify receipt --keys keys.json receipt.jws`,
        ...(inclusion && { inclusion }),
      },
      { Vary: 'Accept' },
    );
  },
});

/**
 * Whether the Accept header gives `application/jose` a higher quality than JSON, each by the most specific range that covers it (RFC 9110 section
 * 12.5.1). With equal quality a type that is named wins over one that a wildcard covers; otherwise JSON wins.
 */
function prefersJose(header = ''): boolean {
  const ranges = new Map<string, number>();
  for (const range of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1;
    if (!ranges.has(name)) ranges.set(name, Number(q) || 0);
  }
  const qualityOf = (type: string) => ranges.get(type) ?? ranges.get('application/*') ?? ranges.get('*/*') ?? 0;
  const [jose, json] = [qualityOf('application/jose'), qualityOf('application/json')];
  const isNamedAlone = ranges.has('application/jose') && !ranges.has('application/json');
  return jose > json || (jose > 0 && jose === json && isNamedAlone);
}
