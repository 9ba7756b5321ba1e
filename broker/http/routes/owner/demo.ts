/** Example calls of the sandbox's agent, for empty pages of the console. */
import { z } from 'zod';
import { type DemoMade, SANDBOX_PLATFORM } from '../../../admin/organisations/demo.ts';
import { METHODS } from '../../../policy/facts.ts';
import { RESULTS } from '../../audit-result.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Possible = z
  .object({
    platform: z.literal(SANDBOX_PLATFORM),
    agent_id: z.string().nullable().describe('who makes the calls; null: nobody can'),
    why_not: z.string().nullable().describe('why there can be none here'),
  })
  .meta({ id: 'Demo' });

/** GET /owner/demo */
export const ownerDemo = route({
  method: 'GET',
  path: '/owner/demo',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.demo.read',
  summary: "Whether this process can make the demo calls of the sandbox's agent.",
  answers: { 200: { description: 'Whether, or why not.', schema: Possible } },
  errors: [],
  handle: async ({ services, who: { organisationId } }) => {
    const found = await services.demo.look(organisationId);
    return json(200, {
      platform: SANDBOX_PLATFORM,
      agent_id: found.ok ? found.agent.agent_id : null,
      why_not: found.ok ? null : found.why,
    });
  },
});

const Made = z
  .object({
    calls: z.array(
      z.object({
        audit_id: z.guid(),
        method: z.enum(METHODS),
        endpoint: z.string(),
        scope: z.string(),
        result: z.enum(RESULTS).nullable().describe('what became of it; `denied`: it was refused'),
        reason: z.string(),
        upstream_status: z.int().nullable(),
      }),
    ),
    approval_id: z.guid().nullable().describe('what waits for a person now, of this demo or of the one before'),
    report_id: z.guid().nullable().describe('what the agent reported of the refusal'),
  })
  .meta({ id: 'DemoMade' });

/** POST /owner/demo */
export const makeOwnerDemo = route({
  method: 'POST',
  path: '/owner/demo',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'demos', perMinute: 6, per: 'address' },
  capability: 'owner.demo.make',
  summary: "Makes demo calls of the sandbox's agent: a read, a change that its scope does not cover, and a refund.",
  description:
    'They are calls as any other, with the key of the agent, its policy and grants, receipts and notices; the refund is left out while one of a demo before waits. No platform but the sandbox is called.',
  body: z.strictObject({}),
  bodyOptional: true,
  answers: { 200: { description: 'What became of them.', schema: Made } },
  errors: ['invalid_request', 'conflict', 'rate_limited', 'audit_unavailable', 'store_restored'],
  handle: async (context) => {
    const { services, source } = context;
    return json(200, shown(await services.demo.make(changingOwner(context), source)));
  },
});

const shown = ({ calls, waiting, reportId }: DemoMade) => ({
  calls: calls.map(({ call: { method, endpoint, scope }, row }) => ({
    audit_id: row.id,
    method,
    endpoint,
    scope,
    result: row.result,
    reason: row.reason,
    upstream_status: row.upstream_status,
  })),
  approval_id: waiting ?? null,
  report_id: reportId ?? null,
});
