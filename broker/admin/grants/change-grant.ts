/** Creates and changes grants for owners: in force from the next decision on every replica. */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import { isEntitled, NOT_ON_PLAN } from '../../entitlement.ts';
import type { Compiled } from '../../facts/compiled.ts';
import type { FactsLoader } from '../../facts/facts.ts';
import { putGrant } from '../../store/agents.ts';
import type { FactsReader } from '../../store/facts-reader.ts';
import { readScopes } from '../../store/stored-terms.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { ChangeRefused } from '../refused.ts';
import { type Remaining, remainingSteps } from './access.ts';
import {
  changedGrant,
  checkTerms,
  describeGrant,
  findGrant,
  type GrantPatch,
  limitsReposFirst,
  loadGrantContext,
} from './grant-terms.ts';
import { refuseUnseen } from './grant-version.ts';

const MAX_WORDS = 4_000;

export type ChangeGrant = Omit<GrantPatch, 'connectionId' | 'scopes'> & {
  /** The agent's uuid or agent id. */
  agentId: string;
  platformId: string;
  /** The label of the connection whose grant is changed; absent: the grant that a call without a connection uses. */
  connection?: string;
  scopes?: readonly string[];
  /** The version of the grant that was edited, null for none; when it is another one by now, nothing is changed. */
  version?: string | null;
};

export type ChangedGrant = {
  grant: GrantTable;
  created: boolean;
  /** Terms that are allowed, but may not be intended. */
  warnings: string[];
  /** Steps that remain before the agent can use the grant. */
  remaining: Remaining[];
  connections: readonly ConnectionTable[];
};

/**
 * Creates or changes a grant, and records it. Serialised with other changes of the organisation's grants, and with governance files.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function changeGrant(
  services: Changing & { compiled: Compiled; facts: FactsReader; loadFacts: FactsLoader } & Uses<'config'>,
  by: ChangingOwner,
  { agentId, platformId, connection, scopes, version, ...terms }: ChangeGrant,
): Promise<ChangedGrant> {
  const { broker } = services;
  const context = await loadGrantContext(services, by.owner.organisation_id, agentId, platformId);
  const { agent, connections } = context;
  const warnings = checkTerms(context, {
    ...(scopes && { scopes: [...scopes] }),
    ...(terms.recipients && { recipients: [...terms.recipients] }),
    ...(terms.repos && { repos: [...terms.repos] }),
    ...(connection !== undefined && { connection }),
  });
  const named = connections.find((one) => one.label === connection);
  const patch = { ...terms, ...(named && { connectionId: named.id }), ...(scopes && { scopes: { all: scopes } }) };
  const change = { reason: 'grant_changed', agent, platform: platformId, detail: recipientsIn(patch) };
  const { grant, created } = await recordInTurn(services, by, change, async (db, note) => {
    const before = await findGrant(db, context, patch.connectionId);
    refuseUnseen(before, version);
    const after = changedGrant(context, before, patch, broker.clock());
    if (limitsReposFirst(before, after) && !isEntitled(broker, agent.organisation_id, 'repository_constraints'))
      throw new ChangeRefused('not_on_plan', NOT_ON_PLAN.repository_constraints);
    await putGrant(db, after);
    note({ before: before ? describeGrant(before) : null, after: describeGrant(after) });
    return { grant: after, created: before === undefined };
  });
  const granted = { platformId, scopes: readScopes(grant.scopes, grant.id), connectionId: grant.connection_id };
  const remaining = await remainingSteps(services, agent, granted, broker.clock());
  return { grant, created, warnings, remaining, connections };
}

/** Recipients are recorded in the audit row but in no receipt (specification, Receipt). */
function recipientsIn({ recipients }: GrantPatch): string | null {
  if (recipients === undefined) return null;
  const words = recipients === null ? 'anybody' : recipients.length === 0 ? 'nobody' : recipients.join(', ');
  return `recipients: ${words.length > MAX_WORDS ? `${words.slice(0, MAX_WORDS).toWellFormed()}…` : words}`;
}
