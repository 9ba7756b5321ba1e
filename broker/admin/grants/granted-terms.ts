/** Grants with limits for a new agent: given in an invite, stored in its row, and in force from the creation of the agent. */
import { z } from 'zod';
import { checkReferences } from '../../config-file/check-references.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { Constraints, Instant, JsonObject } from '../../policy/facts.ts';
import { readStored, Texts } from '../../store/stored-json.ts';
import { StoredConstraints } from '../../store/stored-terms.ts';
import type { ScopesOn } from '../../store/tables/registrations.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { ChangeRefused } from '../refused.ts';
import { limitsRepos } from './grant-terms.ts';

/** `lastsMs`: from the creation of the agent; absent: no expiry. */
export type GrantedOn = ScopesOn & { constraints?: Constraints; requireApproval?: boolean; lastsMs?: number };

const Stored = z.array(
  z.object({
    platformId: z.string(),
    scopes: Texts,
    constraints: StoredConstraints.exactOptional(),
    requireApproval: z.boolean().exactOptional(),
    lastsMs: z.int().exactOptional(),
  }),
);

/** Parses a column that holds them. `what`: names the row in errors. Throws Error when it holds something else. */
export const readGranted = (text: string, what: string): GrantedOn[] => readStored(Stored, text, what);

/** Returns the columns of a new grant. */
export const termsOf = (
  { constraints = {}, requireApproval, lastsMs }: GrantedOn,
  now: Instant,
): Pick<GrantTable, 'constraints' | 'require_approval' | 'expires_at'> => ({
  constraints: JSON.stringify(constraints),
  require_approval: requireApproval ? 1 : 0,
  expires_at: lastsMs === undefined ? null : now + lastsMs,
});

export const limitsAnyRepos = (grants: readonly GrantedOn[]): boolean =>
  grants.some(({ constraints }) => constraints !== undefined && limitsRepos(constraints));

/** Validates recipients by the rules of governance files. Throws ChangeRefused for the first invalid one. */
export function checkRecipients(grants: readonly GrantedOn[], platforms: ReadonlyMap<string, Manifest>): void {
  for (const { platformId, scopes, constraints } of grants) {
    const { recipients } = constraints ?? {};
    if (!recipients) continue;
    const terms = { scopes: [...scopes], recipients: [...recipients] };
    const { problems } = checkReferences(
      { agents: { agent: { grants: { [platformId]: terms } } } },
      { platforms, connections: undefined, policies: undefined, owners: undefined },
    );
    const [first] = problems;
    if (first)
      throw new ChangeRefused(
        'invalid_request',
        `grants: recipients of ${platformId}: "${recipients[Number(first.path.at(-1))] ?? ''}" ${first.message}`,
      );
  }
}

/** Describes grants for the event. Recipients are confidential, so only their number is included. */
export const describeGranted = (grants: readonly GrantedOn[]): JsonObject[] =>
  grants.map(({ platformId, scopes, constraints = {}, requireApproval, lastsMs }) => ({
    platformId,
    scopes,
    ...(constraints.recipients && { recipients: constraints.recipients.length }),
    ...(constraints.repos && { repos: [...constraints.repos] }),
    ...(constraints.allow_repo_creation && { allow_repo_creation: true }),
    ...(requireApproval && { require_approval: true }),
    ...(lastsMs !== undefined && { lasts_seconds: lastsMs / 1000 }),
  }));
