/** Reads and changes policies. A version is immutable; each change creates a new one, in force from the next decision. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import type { RuleSource } from '../../policy/facts.ts';
import { putPolicy } from '../../store/governed-versions.ts';
import {
  countAgentsByPolicy,
  findPolicy,
  listPolicies as listStored,
  listPolicyVersions as listVersions,
  type PolicyInForce,
} from '../../store/policies.ts';
import type { Db } from '../../store/store.ts';
import { readStoredRules } from '../../store/stored-json.ts';
import { ChangeRefused } from '../refused.ts';
import { checkRules, refuseOtherVersion, type SubmittedRules } from './check-rules.ts';
import { describeRules, nextOf, type RuleVersion, readVersions } from './rule-versions.ts';

/** `agents`: number of agents under it that are not revoked. */
export type ListedPolicy = Omit<PolicyInForce, 'rules'> & { agents: number };
/** `words`: a description of each rule. */
export type WholePolicy = ListedPolicy & { rules: RuleSource[]; words: string[] };
/** `warnings`: about rules that are allowed, but may not be intended. */
export type ChangedPolicy = WholePolicy & { warnings: string[] };

/** Lists all policies, by name. */
export async function listPolicies(db: Db, organisationId: string): Promise<ListedPolicy[]> {
  const agents = await countAgentsByPolicy(db, organisationId);
  const policies = await listStored(db, organisationId);
  return policies.map((policy) => ({ ...policy, agents: agents.get(policy.id) ?? 0 }));
}

/** Reads a policy with the rules in force. Throws ChangeRefused. */
export async function readPolicy(db: Db, organisationId: string, idOrName: string): Promise<WholePolicy> {
  const found = await findPolicy(db, organisationId, idOrName);
  if (!found) throw new ChangeRefused('not_found', 'The organisation has no such policy.');
  const agents = (await countAgentsByPolicy(db, organisationId)).get(found.id) ?? 0;
  const rules = readStoredRules(found.rules, `rules of policy ${found.id}`);
  return { ...found, agents, rules, words: describeRules(rules) };
}

/** Returns a page of the versions of a policy, newest first; `next`: cursor of the next page. Throws ChangeRefused. */
export async function listPolicyVersions(
  db: Db,
  organisationId: string,
  idOrName: string,
  page: { limit: number; before?: number | undefined },
): Promise<{ versions: RuleVersion[]; next: number | null }> {
  const { id, name } = await readPolicy(db, organisationId, idOrName);
  const { limit, before } = page;
  const found = await listVersions(db, { organisationId, id }, { limit, ...(before && { before }) });
  const versions = await readVersions(db, organisationId, { policy: { id, name } }, found);
  return { versions, next: nextOf(versions, limit) };
}

const given = (rules: SubmittedRules['rules']): SubmittedRules => ({ kind: 'policy', at: 'rules', rules });

/** Creates a policy. Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function createPolicy(
  services: Changing,
  by: ChangingOwner,
  { name, rules: asked }: { name: string; rules: SubmittedRules['rules'] },
): Promise<ChangedPolicy> {
  const { store, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const { rules, warnings } = await checkRules(store.db, organisationId, given(asked));
  return await recordInTurn(services, by, { reason: 'policy_created' }, async (db, note) => {
    if ((await listStored(db, organisationId)).some((one) => one.name === name))
      throw new ChangeRefused(
        'conflict',
        `There is a policy "${name}" already: send its new rules to its own address.`,
      );
    const policy = { organisationId, id: uuidv4(), name, rules: JSON.stringify(rules) };
    note({ policy: { id: policy.id, name, version: await putPolicy(db, policy, clock()) } });
    return { ...(await readPolicy(db, organisationId, policy.id)), warnings };
  });
}

/**
 * Creates a new version of a policy's rules. `seen`: the version that was edited; when another is in force by now, nothing is changed. Throws
 * ChangeRefused, or AuditUnavailable: then nothing is changed.
 */
export async function changePolicy(
  services: Changing,
  by: ChangingOwner,
  { policy, rules: asked, seen }: { policy: string; rules: SubmittedRules['rules']; seen: number | undefined },
): Promise<ChangedPolicy> {
  const { store, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const { id } = await readPolicy(store.db, organisationId, policy);
  const { rules, warnings } = await checkRules(store.db, organisationId, given(asked));
  return await recordInTurn(services, by, { reason: 'policy_changed' }, async (db, note) => {
    const { name, version: inForce } = await readPolicy(db, organisationId, id);
    refuseOtherVersion(seen, inForce);
    const version = await putPolicy(db, { organisationId, id, name, rules: JSON.stringify(rules) }, clock());
    note({ policy: { id, name, version } });
    return { ...(await readPolicy(db, organisationId, id)), warnings };
  });
}
