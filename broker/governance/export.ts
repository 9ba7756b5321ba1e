/** The present state as a governance file. */
import { Document, isMap, type Node } from 'yaml';
import type { Broker } from '../broker.ts';
import { findOrganisation } from '../store/organisations.ts';
import type { ConnectionTable } from '../store/schema.ts';
import { DEFAULT_POLICY, DEFAULT_POLICY_RULES } from './default-policy.ts';
import { exportAgents } from './export-agents.ts';
import { exportPlatform } from './export-platform.ts';
import { UnknownOrganisation } from './plan.ts';
import { sameJson } from './planning.ts';
import { loadPresent, type Present } from './present.ts';
import type { GovernanceDocumentInput } from './schema.ts';
import { referenceOf } from './secrets.ts';

const byName = <Value>(entries: Iterable<[string, Value]>): [string, Value][] =>
  [...entries].toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));

/**
 * YAML of everything that a governance file can say of an organisation, in an order that depends on nothing but what is
 * said. Secrets stand as the references they came from. Applied again to the same store it changes nothing; what it
 * cannot say (an agent that waits for approval, two agents of one name) stands there as a comment.
 *
 * @throws UnknownOrganisation
 */
export async function exportGovernance(broker: Pick<Broker, 'store'>, organisationId: string): Promise<string> {
  const organisation = await findOrganisation(broker.store.db, organisationId);
  if (!organisation) throw new UnknownOrganisation(organisationId);
  const present = await loadPresent(broker.store.db, organisation);
  const { agents, remarks } = exportAgents(present);
  const sections: GovernanceDocumentInput = {
    organisation: organisation.name,
    publish_identity_documents: organisation.publish_identity_documents === 1,
    auto_suspend: organisation.auto_suspend === null ? false : JSON.parse(organisation.auto_suspend),
    owners: present.owners
      .toSorted((a, b) => a.created_at - b.created_at || (a.email < b.email ? -1 : 1))
      .map(({ email, role }) => ({ email, role })),
    platforms: Object.fromEntries(
      byName(present.platforms).map(([id, manifest]) => [id, exportPlatform(manifest)]),
    ) as NonNullable<GovernanceDocumentInput['platforms']>,
    connections: exportConnections(present),
    policies: exportPolicies(present),
    guardrails: present.guardrails as NonNullable<GovernanceDocumentInput['guardrails']>,
    agents,
  };
  const filled = Object.entries(sections).filter(
    ([, value]) => typeof value !== 'object' || Object.keys(value).length > 0,
  );
  // Quoted where a reader of YAML 1.1 would take a text for something else (`no`, `12:30`).
  const document = new Document(Object.fromEntries(filled), { compat: 'yaml-1.1', aliasDuplicateObjects: false });
  commentOnConnections(document, present);
  if (remarks.length > 0) document.comment = remarks.map((line) => ` ${line}`).join('\n');
  return document.toString({ lineWidth: 0 });
}

function exportConnections({ connections }: Present): NonNullable<GovernanceDocumentInput['connections']> {
  const isOnly = ({ platform_id: platform }: ConnectionTable) =>
    connections.filter((other) => other.platform_id === platform).length === 1;
  const exported = connections.map((connection): [string, object] => {
    const isDefault = connection.is_default === 1;
    return [
      connection.label,
      {
        platform: connection.platform_id,
        ...(connection.secret_reference !== null && { secret: referenceOf(connection.secret_reference) }),
        ...(isDefault !== isOnly(connection) && { default: isDefault }),
      },
    ];
  });
  return Object.fromEntries(byName(exported)) as NonNullable<GovernanceDocumentInput['connections']>;
}

function exportPolicies({ policies }: Present): NonNullable<GovernanceDocumentInput['policies']> {
  const own = byName(policies).filter(
    ([name, { rules }]) => name !== DEFAULT_POLICY || !sameJson(rules, DEFAULT_POLICY_RULES),
  );
  return Object.fromEntries(own.map(([name, { rules }]) => [name, { rules }])) as NonNullable<
    GovernanceDocumentInput['policies']
  >;
}

/** Says of each connection without a reference where its secret is. */
function commentOnConnections(document: Document, { connections }: Present): void {
  const section = document.get('connections');
  if (!isMap(section)) return;
  for (const connection of connections) {
    if (connection.secret_reference !== null) continue;
    const pair = section.items.find((item) => String(item.key) === connection.label);
    if (!pair) continue;
    (pair.key as Node).commentBefore = connection.credential
      ? connection.oauth
        ? ' It was connected through OAuth; its tokens stay.'
        : ' Its secret did not come from a governance file; the stored one stays.'
      : ' It has no secret yet.';
  }
}
