/** TRQP v2.0 adapter: queries about an agent by itself, by its owners, and by anyone where it is published. */

import type { AgentPrincipal, OwnerPrincipal } from '../auth/principal.ts';
import type { Uses } from '../broker.ts';
import { refuseUnreviewed } from '../calls/restored-store.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { askedPlatform } from '../policy/asked-platform.ts';
import { CONCRETE_CHECKS, type Instant, STANDING_CHECKS } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { ANY_ADDRESS } from '../store/facts-breakers.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { PublishedReader } from '../store/published-agents.ts';
import { type AuthorityName, type EntityName, readAuthority, readEntity } from './identifiers.ts';
import { recognise } from './recognition.ts';
import { askStanding, type Standing } from './standing.ts';
import type { TrqpAuthorizationQuery, TrqpRecognitionQuery } from './trqp-request.ts';

/** Undefined: anonymous. */
export type Requester = AgentPrincipal | OwnerPrincipal | undefined;

type TrqpResult = { message: string; context?: Record<string, unknown> };
export type Authorization = TrqpResult & { authorized: boolean };
export type Recognition = TrqpResult & { recognized: boolean };

const AUTHORIZED =
  'Authorized now: status, grant, expiry, breakers, guardrails, policy and scope allow it. Endpoint, recipients and reach are checked at each call.';

const RECOGNIZED =
  'Recognized now. Status, grant, expiry, breakers, guardrails, policy, scope, endpoint, recipients and reach are checked at each call.';

/** Returns whether the agent would be allowed now; undefined when the requester may not ask about it. */
export async function authorization(
  services: Uses<'baseUrl'> & { facts: FactsReader; loadFacts: FactsLoader; published: PublishedReader },
  who: Requester,
  query: TrqpAuthorizationQuery,
  now: Instant,
): Promise<Authorization | undefined> {
  const found = await find(services, who, query, askedPlatform(query.resource));
  if (found === 'forbidden') return undefined;
  if (typeof found === 'string') return { authorized: false, message: found };
  const { connection_id: connectionId } = query.context ?? {};
  const ask = {
    platformId: query.resource,
    scope: query.action,
    ...(connectionId !== undefined && { connectionId }),
  };
  const standing = await askStanding(services, found, ask, now);
  const { kind, reason } = standing.verdict;
  const authorized = kind === 'allow';
  return { authorized, message: authorized ? AUTHORIZED : reason, context: contextOf(standing) };
}

/** Returns whether the authority recognises the agent now; undefined when the requester may not ask about it. */
export async function recognition(
  services: Uses<'baseUrl'> & { facts: FactsReader; published: PublishedReader },
  who: Requester,
  query: TrqpRecognitionQuery,
  now: Instant,
): Promise<Recognition | undefined> {
  const found = await find(services, who, query, '');
  if (found === 'forbidden') return undefined;
  if (typeof found === 'string') return { recognized: false, message: found };
  const agent = present(found[0], 'agent');
  refuseUnreviewed({ agent });
  const standing = recognise(agent, now);
  const recognized = standing === 'recognized';
  return { recognized, message: recognized ? RECOGNIZED : standing };
}

const DECISIONS = { allow: 'allow', hold: 'require_approval', deny: 'deny' } as const;
const STANDING = new Set<string>(STANDING_CHECKS);

function contextOf({ verdict, policy }: Standing): Record<string, unknown> {
  return {
    decision: DECISIONS[verdict.kind],
    ...(policy && { policy_id: policy.id, policy_version: policy.version }),
    evaluated: verdict.evaluated.filter((check) => STANDING.has(check)),
    not_evaluated: CONCRETE_CHECKS,
    ...(verdict.conditional && { conditional: true }),
  };
}

type Names = { entity_id: string; authority_id: string };
type Refused = 'forbidden' | 'not_public' | 'entity_not_governed_by_authority';

/**
 * Loads the facts of the agent. For an anonymous requester, unpublished agents, unknown agents and those of another authority are indistinguishable (AZ-06),
 * also by timing: the statement is the same.
 */
async function find(
  services: Uses<'baseUrl'> & { facts: FactsReader; published: PublishedReader },
  who: Requester,
  names: Names,
  platform: string,
): Promise<readonly FactsRow[] | Refused> {
  // Both were validated with the body.
  const entity = present(readEntity(names.entity_id), 'entity');
  const authority = present(readAuthority(names.authority_id), 'authority');
  const host = new URL(services.broker.baseUrl).host;
  const agentId = entity.host === undefined || entity.host === host ? entity.agentId : undefined;
  const rows = agentId === undefined ? [] : await readFor(services, who, agentId, platform);
  const row = rows[0];
  const isNamed = row !== undefined && isOf(row, entity);
  if (who === undefined) return isNamed && governs(authority, host, row) ? rows : 'not_public';
  if (!isNamed) return 'forbidden';
  return governs(authority, host, row) ? rows : 'entity_not_governed_by_authority';
}

/** No rows when the requester may not learn about this agent. */
async function readFor(
  { facts, published }: { facts: FactsReader; published: PublishedReader },
  who: Requester,
  agentId: string,
  platform: string,
): Promise<readonly FactsRow[]> {
  if (who === undefined) return (await published(agentId)) ? await facts(agentId, platform, ANY_ADDRESS) : [];
  if (who.kind === 'agent') return agentId === who.agent.agent_id ? who.rows : [];
  const rows = await facts(agentId, platform, ANY_ADDRESS);
  return rows[0]?.organisation_id === who.organisationId ? rows : [];
}

/** A workload identity id also names the organisation. */
const isOf = (row: FactsRow, { organisationId }: EntityName): boolean =>
  organisationId === undefined || organisationId === row.organisation_id;

const governs = (authority: AuthorityName, host: string, row: FactsRow): boolean =>
  authority.host === host && (authority.root || authority.organisationId === row.organisation_id);
