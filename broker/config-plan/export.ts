/** Exports the present state as a governance file. */

import { Document, isMap, isScalar, type Node, Scalar, visit } from 'yaml';
import { readOrganisationRow } from '../admin/organisations/organisation.ts';
import type { Broker } from '../broker.ts';
import { sameJson } from '../config-file/differences.ts';
import type { GovernanceDocumentInput } from '../config-file/schema.ts';
import { referenceOf } from '../config-file/secrets.ts';
import { readStoredChannel, sinkSettings } from '../config-file/stored-settings.ts';
import { readable } from '../config-file/yaml-limits.ts';
import { DEFAULT_POLICY, DEFAULT_POLICY_RULES } from '../policy/default-policy.ts';
import type { Instant } from '../policy/facts.ts';
import { pacer } from '../runtime/pace.ts';
import { findGovernanceVersion, lockOrganisation } from '../store/governance.ts';
import { findOrganisation } from '../store/organisations.ts';
import { listStandingApprovals } from '../store/standing-approvals.ts';
import type { Db } from '../store/store.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import { exportAgents } from './export-agents.ts';
import { exportPlatform } from './export-platform.ts';
import { remarksOnOrganisation } from './export-remarks.ts';
import { UnknownOrganisation } from './plan.ts';
import { loadPresent, type Present } from './present.ts';

type Entries = Readonly<Record<string, object>>;
/** For sections that are generated from rows, only the names are typed: tests check that a plan accepts them. */
type Head = Omit<GovernanceDocumentInput, 'platforms' | 'connections' | 'channels' | 'audit_sinks'> &
  Readonly<Record<'platforms' | 'connections' | 'channels' | 'audit_sinks', Entries>>;

const byName = <Value>(entries: Iterable<[string, Value]>): [string, Value][] =>
  [...entries].toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));

/**
 * Returns YAML of everything that a governance file can say about an organisation, in an order that depends only on the
 * content. Secrets are exported as the references they came from, and ends of grants as moments. Applied again to the same store the file
 * changes nothing; applied to another one, that broker decides as this one does. What a file cannot express (an agent that waits for
 * its key, two agents of one name) is exported as a comment. Empty sections are exported, too, because an
 * absent one would leave another broker's section in place.
 *
 * The state is read in many statements, and again if governance was changed meanwhile: of two states an agent could be in the file without its policy.
 *
 * @throws UnknownOrganisation
 */
export async function exportGovernance(
  broker: Pick<Broker, 'store'>,
  organisationId: string,
  now: Instant,
): Promise<string> {
  const { db } = broker.store;
  for (let reads = 0; reads < MAX_READS; reads++) {
    const version = await findGovernanceVersion(db, organisationId);
    const present = await readPresent(db, organisationId, now);
    if ((await findGovernanceVersion(db, organisationId)) === version) return await exportPresent(db, present, now);
  }
  return await db.transaction().execute(async (tx) => {
    await lockOrganisation(tx, organisationId);
    return await exportPresent(tx, await readPresent(tx, organisationId, now), now);
  });
}

/** After so many reads that concurrent changes invalidated, the next one is made under the lock of the organisation. */
const MAX_READS = 3;

async function readPresent(db: Db, organisationId: string, now: Instant): Promise<Present> {
  const organisation = await findOrganisation(db, organisationId);
  if (!organisation) throw new UnknownOrganisation(organisationId);
  return await loadPresent(db, organisation, now);
}

/** Exports a loaded state; `db`: the database that it was loaded from. */
export async function exportPresent(db: Db, present: Present, now: Instant): Promise<string> {
  const { organisation } = present;
  const rest = pacer();
  const { agents, remarks, comments } = await exportAgents(present, now, rest);
  const standing = await listStandingApprovals(db, organisation.id, { now, limit: 1 });
  remarks.push(...remarksOnOrganisation(present, standing.length > 0));
  const settings = readOrganisationRow(organisation);
  await rest();
  const head: Head = {
    organisation: organisation.name,
    publish_identity_documents: organisation.publish_identity_documents === 1,
    auto_suspend: settings.auto_suspend ?? false,
    retention: organisation.retention === null ? false : settings.retention,
    passkey_deciders: settings.passkey_deciders,
    owners: present.owners
      .filter(({ role_by_groups }) => role_by_groups === 0)
      .toSorted((a, b) => a.created_at - b.created_at || (a.email < b.email ? -1 : 1))
      .map(({ email, role }) => ({ email, role })),
    platforms: await exportPlatforms(present, rest),
    caller_issuers: readOrganisationRow(organisation).caller_issuers,
    connections: exportConnections(present),
    channels: exportChannels(present),
    audit_sinks: exportSinks(present),
  };
  await rest();
  const document = new Document(head, AS_YAML);
  commentOnConnections(document, present);
  const texts = [textOf(document)];
  await rest();
  texts.push(...(await inParts('policies', exportPolicies(present), rest)));
  texts.push(textOf(new Document({ guardrails: present.guardrails }, AS_YAML)));
  const byAgent = Map.groupBy(comments, ({ path }) => path[1]);
  const inAgents = await inParts('agents', agents, rest, (part, name) => {
    for (const { path, text } of byAgent.get(name) ?? [])
      (part.getIn(path, true) as Node).comment = ` ${readable(text)}`;
    const key = part.getIn(['agents', name, 'public_key', 'pem'], true);
    if (isScalar(key)) key.type = Scalar.QUOTE_DOUBLE;
  });
  texts.push(...inAgents, ...remarks.map((line, i) => `${i === 0 ? '\n' : ''}# ${readable(line)}\n`));
  return texts.join('');
}

/** Entries that are written in one piece: thousands of agents in one piece would block other requests for a second. */
const BATCH_SIZE = { agents: 25, policies: 5 };

/** Returns the text of a section in parts; `rest` is awaited between them, and `adorn` is called with each entry and its part. */
async function inParts(
  section: keyof typeof BATCH_SIZE,
  entries: Readonly<Record<string, unknown>>,
  rest: () => Promise<void>,
  adorn: (part: Document, name: string) => void = () => {},
): Promise<string[]> {
  const batchSize = BATCH_SIZE[section];
  const texts: string[] = [];
  const names = Object.keys(entries);
  for (let at = 0; at === 0 || at < names.length; at += batchSize) {
    const some = names.slice(at, at + batchSize);
    const part = new Document({ [section]: Object.fromEntries(some.map((name) => [name, entries[name]])) }, AS_YAML);
    for (const name of some) adorn(part, name);
    const text = textOf(part);
    texts.push(at === 0 ? text : text.slice(text.indexOf('\n') + 1));
    await rest();
  }
  return texts;
}

async function exportPlatforms(
  { platforms, suspendedPlatforms }: Present,
  rest: () => Promise<void>,
): Promise<Entries> {
  const exported: Record<string, object> = {};
  for (const [id, manifest] of byName(platforms)) {
    exported[id] = { ...exportPlatform(manifest), ...(suspendedPlatforms.has(id) && { suspended: true }) };
    await rest();
  }
  return exported;
}

/** Quotes texts that a parser of YAML 1.1 would interpret as something else (`no`, `12:30`). */
const AS_YAML = { compat: 'yaml-1.1', aliasDuplicateObjects: false } as const;
/** Writes a public key on one line, so that a file of many agents stays readable. */
const ONE_LINE = { lineWidth: 0, doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY };

/** Returns the text of a document, in which characters that are not allowed in a file are escapes in double quotes. */
function textOf(document: Document): string {
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && readable(scalar.value) !== scalar.value)
        scalar.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return readable(document.toString(ONE_LINE));
}

function exportConnections({ connections }: Present): Entries {
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
        ...(connection.idle_ms !== null && { idle_seconds: connection.idle_ms / 1000 }),
        ...(connection.wait_ms !== null && { wait_seconds: connection.wait_ms / 1000 }),
      },
    ];
  });
  return Object.fromEntries(byName(exported));
}

function exportChannels({ channels }: Present): Entries {
  const exported = channels.map((channel): [string, object] => {
    // What cannot be read of a channel is left out: applied again, the file makes the channel send more rather than nothing.
    const { settings, rules } = readStoredChannel(channel);
    const secret = channel.secret_reference !== null && { secret: referenceOf(channel.secret_reference) };
    return [channel.name, { kind: channel.kind, ...settings, ...secret, ...rules }];
  });
  return Object.fromEntries(byName(exported));
}

function exportSinks({ sinks }: Present): Entries {
  const exported = sinks.map((sink): [string, object] => [
    sink.name,
    {
      kind: sink.kind,
      ...(sink.format !== 'ocsf' && { format: sink.format }),
      ...sinkSettings(sink),
      ...(sink.secret_reference !== null && { secret: referenceOf(sink.secret_reference) }),
    },
  ]);
  return Object.fromEntries(byName(exported));
}

function exportPolicies({ policies }: Present): Entries {
  const own = byName(policies).filter(
    ([name, { rules }]) => name !== DEFAULT_POLICY || !sameJson(rules, DEFAULT_POLICY_RULES),
  );
  return Object.fromEntries(own.map(([name, { rules }]) => [name, { rules }]));
}

/** Adds a comment to each connection without a reference that says where its secret is. */
function commentOnConnections(document: Document, { connections, platforms }: Present): void {
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
      : platforms.get(connection.platform_id)?.per_person?.enabled
        ? ' It needs no secret: people give tokens of their own for it.'
        : ' It has no secret yet.';
  }
}
