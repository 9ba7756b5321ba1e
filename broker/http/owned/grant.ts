/** The owners' view of grants. */

import { z } from 'zod';
import { grantVersion } from '../../admin/grants/grant-version.ts';
import { type Instant, REF_CHANGES } from '../../policy/facts.ts';
import { readConstraints, readScopes } from '../../store/stored-terms.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { GrantTable } from '../../store/tables/rules.ts';

export const Grant = z
  .object({
    grant_id: z.guid(),
    platform: z.string(),
    connection: z
      .object({ connection_id: z.guid(), label: z.string().nullable() })
      .nullable()
      .describe("null: the platform's default one"),
    scopes: z.array(z.string()),
    require_approval: z.boolean().describe('whether every call waits for an approval'),
    expires_at: z.iso.datetime().nullable(),
    expired: z.boolean(),
    recipients: z.array(z.string()).nullable().describe('who may receive what is sent; null: anybody'),
    repos: z.array(z.string()).nullable().describe('repositories that it is limited to; null: all'),
    allow_repo_creation: z.boolean(),
    refs: z.array(z.string()).nullable().describe('branches and tags that it may write; null: all'),
    ref_changes: z.array(z.enum(REF_CHANGES)).nullable().describe('how it may change them; null: in any way'),
    created_at: z.iso.datetime(),
    version: z.string().describe('of its terms, for a change of them: it differs when they do'),
  })
  .meta({ id: 'Grant' });

export function grantShown(
  grant: GrantTable,
  connections: readonly ConnectionTable[],
  now: Instant,
): z.output<typeof Grant> {
  const { recipients, repos, allow_repo_creation, refs, ref_changes } = readConstraints(grant.constraints, grant.id);
  const { connection_id } = grant;
  const label = connections.find(({ id }) => id === connection_id)?.label ?? null;
  return {
    grant_id: grant.id,
    platform: grant.platform_id,
    connection: connection_id === null ? null : { connection_id, label },
    scopes: readScopes(grant.scopes, grant.id),
    require_approval: grant.require_approval === 1,
    expires_at: grant.expires_at === null ? null : new Date(grant.expires_at).toISOString(),
    expired: grant.expires_at !== null && grant.expires_at <= now,
    recipients: recipients ? [...recipients] : null,
    repos: repos ? [...repos] : null,
    allow_repo_creation: allow_repo_creation ?? false,
    refs: refs ? [...refs] : null,
    ref_changes: ref_changes ? [...ref_changes] : null,
    created_at: new Date(grant.created_at).toISOString(),
    version: grantVersion(grant),
  };
}

/** How long a grant lasts, as owners specify it. */
export const LastsSeconds = z
  .int()
  .min(60)
  .max(3650 * 24 * 3600)
  .nullable()
  .optional()
  .describe('how long the grant lasts from now, ten years at most; null: without an end; left out: as it is');

/** Converts it to milliseconds; empty when nothing was specified. */
export const lasting = (seconds: z.output<typeof LastsSeconds>): { lastsMs?: number | null } =>
  seconds === undefined ? {} : { lastsMs: seconds === null ? null : seconds * 1000 };

/** Steps that remain before the granted scopes can be used. */
export const NextSteps = z
  .array(z.object({ reason: z.string(), detail: z.string() }))
  .describe('what else has to be done before the scopes can be used; empty: nothing');
