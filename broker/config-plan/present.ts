/** What the store holds for an organisation, as far as a governance file speaks of it. */

import { guardrailsOf } from '../admin/guardrails.ts';
import { pacer } from '../config-file/pace.ts';
import { readManifest } from '../facts/stored-manifests.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { RuleSource } from '../policy/facts.ts';
import { listFormerKeys } from '../store/agent-keys.ts';
import { listAgents, listGrants } from '../store/agents.ts';
import { listConnections } from '../store/connections.ts';
import { listChannels } from '../store/notice-channels.ts';
import { listOrganisations, listOwners } from '../store/organisations.ts';
import { listPlatformSecrets } from '../store/platform-secrets.ts';
import { listPlatforms } from '../store/platforms.ts';
import { listPolicies } from '../store/policies.ts';
import type {
  AgentTable,
  ConnectionTable,
  GrantTable,
  NoticeChannelTable,
  OrganisationTable,
  OwnerTable,
  PlatformSecretTable,
} from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { readStoredRules } from '../store/stored-json.ts';

export type Present = {
  organisation: OrganisationTable;
  /** Names that belong to other organisations. */
  takenNames: ReadonlySet<string>;
  owners: readonly OwnerTable[];
  /** Deleted ones too: they keep their owner. Children are their parents' affair and not among them. */
  agents: readonly AgentTable[];
  /** Who has a key, by its fingerprint; of several the first. */
  agentsByKey: ReadonlyMap<string, AgentTable>;
  /** Fingerprints of keys that agents had until others were bound. */
  formerKeys: ReadonlySet<string>;
  /** By the agent's uuid; an organisation may have very many. */
  grants: ReadonlyMap<string, readonly GrantTable[]>;
  platforms: ReadonlyMap<string, Manifest>;
  /** Ids of the platforms that are suspended. */
  suspendedPlatforms: ReadonlySet<string>;
  connections: readonly ConnectionTable[];
  /** Without those of one person. */
  channels: readonly NoticeChannelTable[];
  platformSecrets: readonly PlatformSecretTable[];
  policies: ReadonlyMap<string, { id: string; rules: RuleSource[] }>;
  guardrails: RuleSource[];
};

/** Reads it all; in a transaction, what the transaction sees. */
export async function loadPresent(db: Db, organisation: OrganisationTable): Promise<Present> {
  const { id } = organisation;
  // SQLite answers within the turn: without a rest all of it would be one.
  const rest = pacer();
  const reading = async <Read>(read: Promise<Read>): Promise<Read> => {
    const answer = await read;
    await rest();
    return answer;
  };
  const organisations = await listOrganisations(db);
  const platforms = await reading(listPlatforms(db, id));
  const policies = await reading(listPolicies(db, id));
  const agents = await reading(listAgents(db, id, { deleted: true }));
  const grants = await reading(listGrants(db, id));
  const formerKeys = await reading(listFormerKeys(db, id));
  return {
    organisation,
    takenNames: new Set(organisations.filter((other) => other.id !== id).map((other) => other.name)),
    owners: await listOwners(db, id),
    agents,
    agentsByKey: new Map(
      agents.toReversed().flatMap((agent) => (agent.key_fingerprint === null ? [] : [[agent.key_fingerprint, agent]])),
    ),
    formerKeys: new Set(formerKeys.map(({ fingerprint }) => fingerprint)),
    grants: Map.groupBy(grants, (grant) => grant.agent_id),
    platforms: new Map(platforms.map((platform) => [platform.platform_id, readManifest(platform)])),
    suspendedPlatforms: new Set(platforms.filter((one) => one.suspended === 1).map((one) => one.platform_id)),
    connections: await listConnections(db, id),
    channels: (await listChannels(db, id)).filter(({ owner_id }) => owner_id === null),
    platformSecrets: await listPlatformSecrets(db, id),
    policies: new Map(
      policies.map(({ id, name, rules }) => [name, { id, rules: readStoredRules(rules, `rules of policy ${id}`) }]),
    ),
    guardrails: (await guardrailsOf(db, organisation)).guardrails,
  };
}
