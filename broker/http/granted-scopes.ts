/** The grants of a new agent as owners give them: scopes on platforms, with the limits of governance files. */
import { z } from 'zod';
import type { GrantedOn } from '../admin/grants/granted-terms.ts';
import { GrantTerms } from '../config-file/terms.ts';
import { LastsSeconds } from './owned/grant.ts';
import { ScopesOnPlatform } from './registration-request.ts';

const { recipients, repos, require_approval, allow_repo_creation } = GrantTerms.shape;

const GrantedScopes = ScopesOnPlatform.extend({
  expires_in_seconds: LastsSeconds.unwrap()
    .unwrap()
    .optional()
    .describe('how long the grant lasts from the creation of the agent; omitted: without expiry'),
  require_approval,
  recipients,
  repos,
  allow_repo_creation,
});

/** Entries for the same platform are merged; their limits have to be equal. */
export const Granted = z
  .array(GrantedScopes)
  .max(20)
  .transform((asked, context): GrantedOn[] => {
    const merged = new Map<string, GrantedOn>();
    asked.map(grantedOn).forEach((one, i) => {
      const { scopes: known, ...before } = merged.get(one.platformId) ?? { ...one, scopes: [] };
      const { scopes, ...terms } = one;
      if (JSON.stringify(before) !== JSON.stringify(terms))
        context.addIssue({ code: 'custom', path: [i], message: `${one.platformId} is named twice, with other limits` });
      merged.set(one.platformId, { ...one, scopes: [...new Set([...known, ...scopes])] });
    });
    return [...merged.values()];
  });

function grantedOn(asked: z.output<typeof GrantedScopes>): GrantedOn {
  const { platformId, scopes, expires_in_seconds: seconds, recipients, repos, allow_repo_creation } = asked;
  const constraints = {
    ...(recipients && { recipients }),
    ...(repos && { repos }),
    ...(allow_repo_creation && { allow_repo_creation }),
  };
  return {
    platformId,
    scopes,
    ...(Object.keys(constraints).length > 0 && { constraints }),
    ...(asked.require_approval && { requireApproval: true }),
    ...(seconds !== undefined && { lastsMs: seconds * 1000 }),
  };
}

/** The form of granted scopes in answers. */
export const GrantedShown = z.array(
  z.object({
    platformId: z.string(),
    scopes: z.array(z.string()),
    expires_in_seconds: z.number().nullable().describe('from the creation of the agent; null: without expiry'),
    require_approval: z.boolean().describe('whether every call waits for an approval'),
    recipients: z.array(z.string()).nullable().describe('who may receive what is sent; null: anybody'),
    repos: z.array(z.string()).nullable().describe('repositories that it is limited to; null: all'),
    allow_repo_creation: z.boolean(),
  }),
);

export const grantedShown = (grants: readonly GrantedOn[]): z.output<typeof GrantedShown> =>
  grants.map(({ platformId, scopes, constraints = {}, requireApproval, lastsMs }) => ({
    platformId,
    scopes: [...scopes],
    expires_in_seconds: lastsMs === undefined ? null : lastsMs / 1000,
    require_approval: requireApproval ?? false,
    recipients: constraints.recipients ? [...constraints.recipients] : null,
    repos: constraints.repos ? [...constraints.repos] : null,
    allow_repo_creation: constraints.allow_repo_creation ?? false,
  }));
