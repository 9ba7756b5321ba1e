/** Closes an organisation: ends everything by which it acts or holds credentials. Its record stays, for its people to read, until its retention deletes it. */
import { type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { findAgentsStopped } from '../../store/agents-stopped.ts';
import { listConnections } from '../../store/connections.ts';
import { countPending } from '../../store/log-pending.ts';
import { deleteChannelsOfOwner } from '../../store/notice-channels.ts';
import { listOrganisations, listOwners, putOwner } from '../../store/organisations.ts';
import { deletePlatformSecrets } from '../../store/platform-secrets.ts';
import { listLiveAgents } from '../../store/revoke-agent.ts';
import type { Db } from '../../store/store.ts';
import { REVOCABLE } from '../agents/change-agent-status.ts';
import { endAgent } from '../agents/end-agent.ts';
import { stopAllAgents } from '../agents/stop-agents.ts';
import { readSinks, removeAuditSink } from '../audit-sinks.ts';
import { readChannels, removeChannel } from '../channels.ts';
import { removeConnection } from '../connections/connections.ts';
import { endPeople } from '../people/people.ts';
import { listPipelines, removePipeline } from '../pipelines.ts';
import { ChangeRefused } from '../refused.ts';

type Services = Parameters<typeof endPeople>[0] &
  Parameters<typeof removeConnection>[0] &
  Parameters<typeof removeChannel>[0];

/** Agents that one request revokes: fewer than a second's work, so that the caller sees progress and no request times out. */
const AGENTS_PER_STEP = 200;
const DETAIL = 'The organisation was closed.';

/** `agentsLeft`: whether agents are left to be revoked, or something else was made meanwhile. `sinks`: audit sinks that still have rows to send. When both are empty, it is closed. */
export type Closing = { agentsLeft: boolean; sinks: { name: string; behind: number }[] };

/**
 * Does the next step of closing an organisation; call it until nothing is left. Each change is recorded by itself, and a step that failed can be
 * repeated. In order: its agents are stopped and revoked, people's tokens and connections end (at the platforms too, where these can revoke tokens),
 * then secrets of platforms, channels and pipelines, and all owners become viewers. Audit sinks end when they have sent what there is.
 *
 * @param options `dropSinks`: removes sinks with rows that they did not send
 * @throws ChangeRefused for the oldest organisation, and the one in which groups give roles; AuditUnavailable
 */
export async function closeOrganisation(
  services: Services,
  by: ChangingOwner,
  { dropSinks }: { dropSinks: boolean },
): Promise<Closing> {
  const { db } = services.broker.store;
  const { organisation_id: organisationId } = by.owner;
  await refuseNeeded(services, organisationId);
  if ((await findAgentsStopped(db, organisationId)) === undefined)
    await stopAllAgents(services, by, { detail: DETAIL });
  if (await revokeSome(services, by)) return { agentsLeft: true, sinks: [] };
  await endPeople(services, by, {});
  for (const { id } of await listConnections(db, organisationId)) await removeConnection(services, by, id);
  for (const { channel } of await readChannels(db, organisationId)) await removeChannel(services, by, channel.id);
  for (const { id } of await listPipelines(db, organisationId)) await removePipeline(services, by, id);
  await demoteOwners(services, by);
  // Until now admins, and whoever had an invite of theirs, could make more.
  if (await isSomethingLeft(db, organisationId)) return { agentsLeft: true, sinks: [] };
  return { agentsLeft: false, sinks: await endSinks(services, by, dropSinks) };
}

/** Refuses the oldest organisation, to which sign-ins without a name and `serve --config` lead, and the one in which groups make people admins. */
async function refuseNeeded({ broker }: Pick<Services, 'broker'>, id: string): Promise<void> {
  const [oldest] = await listOrganisations(broker.store.db);
  if (oldest?.id === id)
    throw new ChangeRefused(
      'conflict',
      `${oldest.name} is the oldest organisation of this broker, to which sign-ins without a name and "serve --config" lead: it cannot be closed. Where the broker is no longer used, delete its data.`,
    );
  if (broker.config.oidc?.groups?.organisation === id)
    throw new ChangeRefused(
      'conflict',
      'Groups of the identity provider give roles in this organisation. Remove OIDC_ROLES_ORGANISATION, or set it to another one, and restart the broker first.',
    );
}

/** Revokes the next agents, children included. Returns whether there were any. */
async function revokeSome(services: Services, by: ChangingOwner): Promise<boolean> {
  const place = { organisationId: by.owner.organisation_id, statuses: REVOCABLE, limit: AGENTS_PER_STEP };
  const agents = await listLiveAgents(services.broker.store.db, place);
  const ending = { from: REVOCABLE, cause: 'owner_manual', detail: DETAIL } as const;
  for (const agent of agents) await endAgent(services, by, { reason: 'agent_revoked', detail: DETAIL }, agent, ending);
  return agents.length > 0;
}

/** Makes all owners viewers without devices, which ends what they made as admins and is unused, and deletes the secrets of platforms. */
async function demoteOwners(services: Services, by: ChangingOwner): Promise<void> {
  const { store } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const isHigher = ({ role, role_by_groups }: { role: string; role_by_groups: number }) =>
    role !== 'viewer' || role_by_groups === 1;
  if (!(await listOwners(store.db, organisationId)).some(isHigher)) return;
  await recordInTurn(services, by, { reason: 'organisation_closed' }, async (tx, note) => {
    const owners = await listOwners(tx, organisationId);
    for (const owner of owners) {
      await putOwner(tx, { ...owner, role: 'viewer', role_by_groups: 0 });
      await deleteChannelsOfOwner(tx, owner);
    }
    note({ owners: owners.length, platform_secrets: await deletePlatformSecrets(tx, organisationId) });
  });
}

/** Whether there is a live agent, a connection, a channel of the organisation, or a pipeline. */
async function isSomethingLeft(db: Db, organisationId: string): Promise<boolean> {
  const found = await Promise.all([
    listLiveAgents(db, { organisationId, statuses: REVOCABLE, limit: 1 }),
    listConnections(db, organisationId),
    readChannels(db, organisationId),
    listPipelines(db, organisationId),
  ]);
  return found.some((list) => list.length > 0);
}

/** Removes the sinks that have sent all rows, those on their way to the receipt log included, or all sinks. Returns the others. */
async function endSinks(services: Services, by: ChangingOwner, all: boolean): Promise<Closing['sinks']> {
  const left: Closing['sinks'] = [];
  const { db } = services.broker.store;
  const { organisation_id: organisationId } = by.owner;
  for (const { sink } of await readSinks(db, organisationId)) {
    const { rows } = await countPending(db, organisationId);
    const behind = Number(sink.log_size) - Number(sink.next_index) + rows;
    if (all || behind <= 0) await removeAuditSink(services, by, sink.id);
    else left.push({ name: sink.name, behind });
  }
  return left;
}
