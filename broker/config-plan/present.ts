/** Loads the data of an organisation that a governance file describes. */

import { guardrailsOf } from '../admin/policies/guardrails.ts';
import { readManifest } from '../facts/stored-manifests.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant, RuleSource } from '../policy/facts.ts';
import { pacer } from '../runtime/pace.ts';
import { listFormerKeys } from '../store/agent-keys.ts';
import { listAgentsAfter, listGrantsAfter } from '../store/agents.ts';

import { listSinks, type SinkWithLog } from '../store/audit-sinks.ts';
import { listConnections } from '../store/connections.ts';
import { countGivenTokens } from '../store/given-tokens.ts';
import { countHeldByPlatform } from '../store/inbox.ts';
import { listChannels } from '../store/notice-channels.ts';
import { listOrganisations, listOwners } from '../store/organisations.ts';
import { listPlatformSecrets } from '../store/platform-secrets.ts';
import { listPlatforms } from '../store/platforms.ts';
import { listPolicies } from '../store/policies.ts';
import type { Db } from '../store/store.ts';
import { readStoredRules } from '../store/stored-json.ts';
import type { AgentTable, WorkloadTable } from '../store/tables/agents.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import type { OrganisationTable, OwnerTable } from '../store/tables/organisations.ts';
import type { PlatformSecretTable } from '../store/tables/platforms.ts';
import type { GrantTable } from '../store/tables/rules.ts';
import { listWorkloadsAfter } from '../store/workloads.ts';

export type Present = {
  organisation: OrganisationTable;
  /** Names that belong to other organisations. */
  takenNames: ReadonlySet<string>;
  owners: readonly OwnerTable[];
  /** Includes deleted agents, which keep their owner. Children are excluded: they are managed by their parents. */
  agents: readonly AgentTable[];
  /** Agents by the fingerprint of their key; of several with the same one, the first. */
  agentsByKey: ReadonlyMap<string, AgentTable>;
  /** Fingerprints of keys that agents had before others were bound. */
  formerKeys: ReadonlySet<string>;
  /** By the agent's uuid; an organisation may have very many. */
  grants: ReadonlyMap<string, readonly GrantTable[]>;
  /** By the agent's uuid. */
  workloads: ReadonlyMap<string, WorkloadTable>;
  platforms: ReadonlyMap<string, Manifest>;
  /** Ids of the platforms that are suspended. */
  suspendedPlatforms: ReadonlySet<string>;
  connections: readonly ConnectionTable[];
  /** Channels of the organisation, without those of one person. */
  channels: readonly NoticeChannelTable[];
  sinks: readonly SinkWithLog[];
  platformSecrets: readonly PlatformSecretTable[];
  /** How many tokens people gave, by platform. */
  givenTokens: ReadonlyMap<string, number>;
  /** How many held calls wait for a decision, by platform. */
  heldCalls: ReadonlyMap<string, number>;
  policies: ReadonlyMap<string, { id: string; rules: RuleSource[] }>;
  guardrails: RuleSource[];
};

/** The number of rows that SQLite reads in some 3 ms. */
const PAGE = 1_000;

async function inPages<Row extends { id: string }>(
  read: (page: { after: string; limit: number }) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let after = ''; ; ) {
    const page = await read({ after, limit: PAGE });
    rows.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return rows;
    after = last.id;
  }
}

type Created = { id: string; created_at: number };
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const byCreation = (a: Created, b: Created): number => a.created_at - b.created_at || byText(a.id, b.id);

/** Loads everything; in a transaction, what the transaction sees. */
export async function loadPresent(db: Db, organisation: OrganisationTable, now: Instant): Promise<Present> {
  const { id } = organisation;
  // SQLite answers synchronously: without yielding, loading would block the event loop.
  const rest = pacer();
  const reading = async <Read>(read: Promise<Read>): Promise<Read> => {
    const answer = await read;
    await rest();
    return answer;
  };
  const organisations = await listOrganisations(db);
  await rest();
  const platforms = await reading(listPlatforms(db, id));
  const storedPolicies = await reading(listPolicies(db, id));
  const agents = await inPages((page) => reading(listAgentsAfter(db, id, page)));
  agents.sort(byCreation);
  await rest();
  const grants = await inPages((page) => reading(listGrantsAfter(db, id, page)));
  grants.sort((a, b) => byText(a.platform_id, b.platform_id) || byCreation(a, b));
  await rest();
  const workloads = await inPages((page) => reading(listWorkloadsAfter(db, id, page)));
  const formerKeys = await reading(listFormerKeys(db, id));
  const agentsByKey = new Map<string, AgentTable>();
  for (const agent of agents.toReversed()) {
    if (agent.key_fingerprint !== null) agentsByKey.set(agent.key_fingerprint, agent);
    await rest();
  }
  const grantsByAgent = Map.groupBy(grants, (grant) => grant.agent_id);
  await rest();
  const policies = new Map<string, { id: string; rules: RuleSource[] }>();
  for (const { id, name, rules } of storedPolicies) {
    policies.set(name, { id, rules: readStoredRules(rules, `rules of policy ${id}`) });
    await rest();
  }
  return {
    organisation,
    takenNames: new Set(organisations.filter((other) => other.id !== id).map((other) => other.name)),
    owners: await listOwners(db, id),
    agents,
    agentsByKey,
    formerKeys: new Set(formerKeys.map(({ fingerprint }) => fingerprint)),
    grants: grantsByAgent,
    workloads: new Map(workloads.map((workload) => [workload.agent_id, workload])),
    platforms: new Map(platforms.map((platform) => [platform.platform_id, readManifest(platform)])),
    suspendedPlatforms: new Set(platforms.filter((one) => one.suspended === 1).map((one) => one.platform_id)),
    connections: await listConnections(db, id),
    channels: (await listChannels(db, id)).filter(({ owner_id }) => owner_id === null),
    sinks: await listSinks(db, id),
    platformSecrets: await listPlatformSecrets(db, id),
    givenTokens: tokensByPlatform(await countGivenTokens(db, id)),
    heldCalls: await countHeldByPlatform(db, id, now),
    policies,
    guardrails: (await guardrailsOf(db, organisation)).guardrails,
  };
}

function tokensByPlatform(counts: Awaited<ReturnType<typeof countGivenTokens>>): Map<string, number> {
  const byPlatform = new Map<string, number>();
  for (const { platform_id: platformId, count } of counts)
    byPlatform.set(platformId, (byPlatform.get(platformId) ?? 0) + count);
  return byPlatform;
}
