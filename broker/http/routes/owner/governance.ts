/** Governance as code, for the command line: plan and apply a file. */
import { z } from 'zod';
import type { Governance } from '../../../config-file/governance.ts';
import { withGovernance } from '../../../config-file/parse-off-thread.ts';
import { formatProblem, type Problem } from '../../../config-file/problems.ts';
import { listApplies, MAX_FILE_CHARACTERS, readFileBefore } from '../../../config-plan/applies.ts';
import { applyGovernance } from '../../../config-plan/apply-recorded.ts';
import { exportGovernance } from '../../../config-plan/export.ts';
import { changesFor, fileFor } from '../../../config-plan/for-role.ts';
import { planGovernance } from '../../../config-plan/plan.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { Secret } from '../../../crypto/secret.ts';
import { isEntitled } from '../../../entitlement.ts';
import { Refusal } from '../../errors.ts';
import { AppliedShown, appliedShown, ChangeShown, PlannedShown } from '../../governance-shown.ts';
import { changingBy } from '../../owner-change.ts';
import { json, longJson } from '../../reply.ts';
import { route } from '../../route.ts';
import { MadeBy } from '../../rule-schemas.ts';

const GovernanceFile = z.strictObject({
  text: z.string().max(MAX_FILE_CHARACTERS).describe('the file as it is written, at most 8 MiB'),
  file: z.string().max(1024).default('governance.yaml').describe('what to call it in problems'),
  values: z
    .record(z.string().max(1100), z.string().max(64 * 1024))
    .default({})
    .describe('the values that the file names instead of writing them, by "env:NAME" or "file:PATH"'),
});
type GovernanceFile = z.output<typeof GovernanceFile>;

const keep_secrets = z
  .boolean()
  .default(false)
  .describe('whether a secret stays whose value is not given, where the stored one came from the same reference');

const PlannedFile = GovernanceFile.extend({
  keep_secrets,
  without_secrets: z
    .boolean()
    .default(false)
    .describe(
      'whether to leave secrets out: the plan then needs no values of them and does not say whether they change. This is always the case for owners other than admins',
    ),
});

const AppliedFile = GovernanceFile.extend({
  keep_secrets,
  governance_version: z
    .string()
    .max(100)
    .optional()
    .describe('as the plan answered it; when something else is in force by now, nothing is changed'),
});

/** Enough for a text of 8 MiB with its JSON escapes, and the values. */
const MAX_BYTES = 20 * 1024 * 1024;

function refuse(problems: readonly Problem[]): never {
  throw new Refusal('invalid_governance', 'The governance file cannot be applied; nothing was changed.', {
    extra: { problems: problems.map(formatProblem) },
  });
}

/** Parses the file and calls `work` with it and with the values that it names. */
async function reading<Result>(
  body: GovernanceFile,
  work: (governance: Governance, values: Map<string, Secret>) => Promise<Result>,
): Promise<Result> {
  return await withGovernance(body.text, body.file, async (parsed) => {
    if (!parsed.ok) return refuse(parsed.problems);
    const values = new Map(Object.entries(body.values).map(([key, value]) => [key, new Secret(value)]));
    return await work(parsed.governance, values);
  });
}

/** POST /owner/governance/plan */
export const governancePlan = route({
  method: 'POST',
  path: '/owner/governance/plan',
  auth: 'owner_or_pipeline',
  role: 'viewer',
  capability: 'owner.governance.plan',
  summary: 'What a governance file would change; for admins also changes of secrets.',
  body: PlannedFile,
  maxBodyBytes: MAX_BYTES,
  inTurn: true,
  answers: { 200: { description: 'The changes and warnings.', schema: PlannedShown } },
  errors: ['invalid_request', 'invalid_governance', 'rate_limited'],
  handle: async ({ services: { broker }, who, body }) => {
    const planned = await reading(body, (governance, values) =>
      planGovernance(broker, who.organisationId, governance, values, broker.clock(), {
        // Not for viewers: the answer would reveal whether a sent value equals the stored secret.
        comparesSecrets: who.role === 'admin' && !body.without_secrets,
        keepsSecrets: body.keep_secrets,
        mayLimitRepos: isEntitled(broker, who.organisationId, 'repository_constraints'),
        hasAuditFolder: broker.config.auditFolder !== undefined,
      }),
    );
    if (!planned.ok) return refuse(planned.problems);
    return await longJson(200, {
      changes: changesFor(who.role, planned.plan.changes),
      warnings: planned.plan.warnings.map(formatProblem),
      governance_version: planned.version,
      needs_values: planned.needs,
    });
  },
});

/** POST /owner/governance/apply */
export const governanceApply = route({
  method: 'POST',
  path: '/owner/governance/apply',
  auth: 'owner_or_pipeline',
  role: 'admin',
  capability: 'owner.governance.apply',
  summary: 'Applies a governance file, in one transaction.',
  body: AppliedFile,
  maxBodyBytes: MAX_BYTES,
  inTurn: true,
  answers: { 200: { description: 'The changes that were made.', schema: AppliedShown } },
  errors: ['invalid_request', 'invalid_governance', 'conflict', 'rate_limited', 'audit_unavailable'],
  handle: async (context) => {
    const { who, body, services } = context;
    const applied = await reading(body, (governance, values) =>
      applyGovernance(services, changingBy(context), governance, values, {
        ...(who.kind === 'pipeline' && { detail: who.detail }),
        plannedFor: body.governance_version,
        keepsSecrets: body.keep_secrets,
      }),
    );
    if (!applied.ok && applied.changed)
      throw new Refusal('conflict', 'The state has changed since the plan was made; plan again. Nothing was changed.');
    if (!applied.ok) return refuse(applied.problems);
    return await longJson(200, appliedShown(services.broker.baseUrl, who.kind, applied));
  },
});

/** GET /owner/governance */
export const governanceExport = route({
  method: 'GET',
  path: '/owner/governance',
  auth: 'owner_or_pipeline',
  role: 'viewer',
  capability: 'owner.governance.export',
  summary:
    'The present state as a governance file; secrets by their names only. Channels and audit sinks are for admins only.',
  answers: { 200: { description: 'The file.', schema: z.object({ text: z.string() }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    await longJson(200, {
      text: fileFor(who.role, await exportGovernance(broker, who.organisationId, broker.clock())),
    }),
});

const ApplyShown = z
  .object({
    id: z.guid().describe('of its audit row'),
    applied_at: z.iso.datetime(),
    made_by: MadeBy,
    detail: z.string().nullable().describe("the audit row's words, such as the name of the file"),
    change_count: z.int(),
    changes: z.array(ChangeShown).describe('the first 200; of more than that, policies and guardrails first'),
    has_file: z.boolean().describe('whether what was in force before it is kept; not of more than 8 MiB'),
  })
  .meta({ id: 'GovernanceApply' });

/** GET /owner/governance/applies */
export const governanceApplies = route({
  method: 'GET',
  path: '/owner/governance/applies',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.governance.applies',
  summary: 'The last 20 applies of governance files, newest first, with what each changed.',
  answers: { 200: { description: 'The applies.', schema: z.object({ applies: z.array(ApplyShown) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, {
      applies: (await listApplies(broker.store.db, who.organisationId)).map((one) => ({
        id: one.id,
        applied_at: new Date(one.created_at).toISOString(),
        made_by: { by: one.made_by, how: one.how, audit_id: one.id },
        detail: one.detail,
        change_count: one.changeCount,
        changes: changesFor(who.role, one.changes),
        has_file: one.hasFile,
      })),
    }),
});

/** GET /owner/governance/applies/{id}/before */
export const governanceBefore = route({
  method: 'GET',
  path: '/owner/governance/applies/{id}/before',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.governance.before',
  summary: 'The state before an apply, as a governance file; applying it restores that state.',
  params: { id: z.guid().describe('the id of the apply') },
  answers: { 200: { description: 'The file.', schema: z.object({ text: z.string() }) } },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params }) => {
    const text = await readFileBefore(broker.store.db, who.organisationId, storedUuid(params.id));
    if (text === undefined) throw new Refusal('not_found', 'There is no such apply, or it is no longer stored.');
    if (text === null) throw new Refusal('not_found', 'The previous state was longer than 8 MiB, and was not stored.');
    return await longJson(200, { text: fileFor(who.role, text) });
  },
});
