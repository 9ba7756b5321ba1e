/** Statements that read rows, for named-rows.test.ts. */
import { countOpenRequests, findOpenRequest } from '../../broker/store/access-requests.ts';
import { findOtherAgentWithKey, isFormerKey, keyReplacedAt } from '../../broker/store/agent-keys.ts';
import { findAgent, findLiveAgentNamed, listGrants } from '../../broker/store/agents.ts';
import { countPending, findApproval, holdsRead } from '../../broker/store/approvals.ts';
import { findAuditRow } from '../../broker/store/audit.ts';
import { countBreakersOpenAt, listBreakersOpenAt } from '../../broker/store/breakers.ts';
import { findCallMarks } from '../../broker/store/call-marks.ts';
import { areLiving, listLivingChildren, listOverdueChildren } from '../../broker/store/children.ts';
import { findConnection } from '../../broker/store/connections.ts';
import { pageOfGivenTokens } from '../../broker/store/given-tokens.ts';
import { findGuardrailRules, findManifest, findPolicyRules } from '../../broker/store/governed-versions.ts';
import { findLiveAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import { findMcpRepeat } from '../../broker/store/mcp-repeats.ts';
import { findChannel, listChannelsOfOwner } from '../../broker/store/notice-channels.ts';
import { findDelivery, listDue } from '../../broker/store/notice-deliveries.ts';
import { findOAuthFlow } from '../../broker/store/oauth-flows.ts';
import { findTokens } from '../../broker/store/oauth-tokens.ts';
import { findObtainedTokens } from '../../broker/store/obtained-tokens.ts';
import { findOneTimeToken } from '../../broker/store/one-time-tokens.ts';
import { listOpenRegistrations, listPendingRegistrations } from '../../broker/store/open-registrations.ts';
import { findActivePasskey, findPasskeyOf, listPasskeys, listPasskeysOfAll } from '../../broker/store/passkeys.ts';
import { findPersonId, listGivenTokens, listPersonTokens } from '../../broker/store/people.ts';
import { countOpenConsents, findOpenConsent } from '../../broker/store/person-consents.ts';
import { listPersonSessions } from '../../broker/store/person-sessions.ts';
import { listPlatformSecrets } from '../../broker/store/platform-secrets.ts';
import { listPolicyVersions } from '../../broker/store/policies.ts';
import { refusalsAt } from '../../broker/store/refusal-counts.ts';
import { findSeenValues } from '../../broker/store/seen-values.ts';
import { countStanding, findStandingTerms, standsFor } from '../../broker/store/standing-approvals.ts';
import { listStaticKeys } from '../../broker/store/static-keys.ts';
import { findUpstreamToken } from '../../broker/store/upstream-tokens.ts';
import { findWorkloadOf } from '../../broker/store/workloads.ts';
import {
  APPROVED,
  type Case,
  DENIED,
  ENDED_BY_OWNER,
  FUTURE,
  NOW,
  OTHER,
  OWN,
  PAST,
  PENDING,
  placeOf,
  reading,
  upstream,
} from './statement-case.ts';

const AGENTS = { organisation_id: OTHER, agent_id: OTHER } as const;
const LIVE = { status: 'active', expires_at: FUTURE } as const;

export const READING: Case[] = [
  reading(
    'access_requests',
    'open',
    { given: PENDING, others: { ...AGENTS, platform_id: OTHER, scope: OTHER, status: DENIED, expires_at: PAST } },
    (db, row) =>
      findOpenRequest(
        db,
        { organisationId: row.organisation_id, agentUuid: row.agent_id, platformId: row.platform_id, scope: row.scope },
        NOW,
      ),
  ),
  reading(
    'access_requests',
    'count',
    { given: PENDING, others: { ...AGENTS, status: DENIED, expires_at: PAST } },
    (db, row) => countOpenRequests(db, { organisationId: row.organisation_id, agentUuid: row.agent_id }, NOW),
  ),
  reading('agent_deeds', 'find', { others: { ...AGENTS, hash: OTHER } }, (db, row) =>
    findSeenValues(db, row, [row.hash]),
  ),
  reading('agents', 'find', { others: OWN }, (db, row) => findAgent(db, row.organisation_id, row.id)),
  reading(
    'agents',
    'with this name',
    {
      given: { status: 'active' },
      others: { organisation_id: OTHER, name: OTHER, parent_id: 'parent', status: 'revoked' },
    },
    (db, row) => findLiveAgentNamed(db, row.organisation_id, row.name),
  ),
  reading(
    'agents',
    'with this key',
    { given: { key_fingerprint: 'key' }, others: { organisation_id: OTHER, id: 'me', key_fingerprint: OTHER } },
    (db, row) => findOtherAgentWithKey(db, { organisationId: row.organisation_id, id: 'me' }, 'key'),
  ),
  reading('agents', 'live', { given: LIVE, others: { ...OWN, status: 'revoked', expires_at: PAST } }, (db, row) =>
    areLiving(db, row.organisation_id, [row.id], NOW),
  ),
  reading(
    'agents',
    'live children',
    {
      given: { ...LIVE, parent_id: 'parent' },
      others: { organisation_id: OTHER, parent_id: OTHER, status: 'revoked' },
    },
    (db, row) => listLivingChildren(db, { organisationId: row.organisation_id, id: 'parent' }),
  ),
  reading(
    'agents',
    'overdue children',
    {
      given: { status: 'active', expires_at: PAST, parent_id: 'parent' },
      others: { organisation_id: OTHER, parent_id: OTHER, status: 'revoked', expires_at: FUTURE },
    },
    (db, row) => listOverdueChildren(db, { organisationId: row.organisation_id, id: 'parent' }, { now: NOW, limit: 9 }),
  ),
  reading('approvals', 'find', { given: PENDING, others: OWN }, (db, row) =>
    findApproval(db, row.organisation_id, row.id),
  ),
  reading(
    'approvals',
    'count',
    { given: PENDING, others: { ...AGENTS, status: { ...DENIED, decided_how: 'api' }, expires_at: PAST } },
    (db, row) => countPending(db, row.organisation_id, row.agent_id, NOW),
  ),
  reading(
    'approvals',
    'hold a read',
    { given: { method: 'GET' }, others: { ...AGENTS, id: OTHER, method: 'POST' } },
    (db, row) => holdsRead(db, row.organisation_id, row.agent_id, [row.id]),
  ),
  reading('audit_rows', 'find', { others: OWN }, (db, row) => findAuditRow(db, row.organisation_id, row.id)),
  reading(
    'breakers',
    'open at',
    { given: { open_until: FUTURE }, others: { organisation_id: OTHER, open_until: PAST } },
    (db, row) => listBreakersOpenAt(db, row.organisation_id, NOW),
  ),
  reading(
    'breakers',
    'count',
    { given: { open_until: FUTURE }, others: { ...AGENTS, cause: 'breaker_api_error', open_until: PAST } },
    (db, row) => countBreakersOpenAt(db, row, NOW),
  ),
  reading('call_marks', 'find', { others: { ...AGENTS, kind: 'other' } }, (db, row) =>
    findCallMarks(db, row, [row.kind]),
  ),
  reading('connections', 'find', { others: OWN }, (db, row) => findConnection(db, row.organisation_id, row.id)),
  reading('former_keys', 'former', { others: { organisation_id: OTHER, fingerprint: OTHER } }, (db, row) =>
    isFormerKey(db, row.organisation_id, row.fingerprint),
  ),
  reading(
    'former_keys',
    'replaced at',
    {
      given: { replaced_at: PAST },
      others: {
        organisation_id: { organisation_id: 'other', replaced_at: FUTURE },
        agent_id: { agent_id: 'other', replaced_at: FUTURE },
      },
    },
    (db, row) => keyReplacedAt(db, row.organisation_id, row.agent_id),
  ),
  reading('grants', 'of an agent', { others: AGENTS }, (db, row) => listGrants(db, row.organisation_id, row.agent_id)),
  reading('guardrails_versions', 'rules', { others: { organisation_id: OTHER, version: 9 } }, (db, row) =>
    findGuardrailRules(db, row.organisation_id, row.version),
  ),
  reading(
    'mcp_authorisations',
    'live',
    {
      given: { ended_at: null, expires_at: FUTURE },
      others: { id: OTHER, ended_at: ENDED_BY_OWNER, expires_at: PAST },
    },
    (db, row) => findLiveAuthorisation(db, row.id, NOW),
  ),
  reading(
    'mcp_repeats',
    'find',
    { given: { expires_at: FUTURE }, others: { ...AGENTS, hash: OTHER, expires_at: PAST } },
    (db, row) => findMcpRepeat(db, row, NOW),
  ),
  reading('notice_channels', 'find', { others: OWN }, (db, row) => findChannel(db, row.organisation_id, row.id)),
  reading(
    'notice_channels',
    'of an owner',
    { given: { owner_id: 'owner' }, others: { organisation_id: OTHER, owner_id: OTHER } },
    (db, row) => listChannelsOfOwner(db, { organisation_id: row.organisation_id, id: 'owner' }),
  ),
  reading(
    'notice_deliveries',
    'due',
    {
      given: { state: 'due', due_at: PAST },
      others: { organisation_id: OTHER, channel_id: OTHER, state: 'sent', due_at: FUTURE },
    },
    (db, row) => listDue(db, row, { now: NOW, limit: 9 }),
  ),
  reading('notice_deliveries', 'find', { others: OWN }, (db, row) => findDelivery(db, row.organisation_id, row.id)),
  reading(
    'oauth_flows',
    'find',
    { given: { state_hash: 'state', expires_at: FUTURE }, others: { state_hash: OTHER, expires_at: PAST } },
    (db) => findOAuthFlow(db, 'state', NOW),
  ),
  reading('one_time_tokens', 'find', { others: { token_hash: OTHER, kind: 'bootstrap' } }, (db, row) =>
    findOneTimeToken(db, row.kind, row.token_hash),
  ),
  reading(
    'passkeys',
    'of an owner',
    { given: { status: 'active' }, others: { organisation_id: OTHER, owner_id: OTHER, status: 'removed' } },
    (db, row) => listPasskeys(db, { organisationId: row.organisation_id, ownerId: row.owner_id }),
  ),
  reading(
    'passkeys',
    'of all',
    { given: { status: 'active' }, others: { organisation_id: OTHER, status: 'removed' } },
    (db, row) => listPasskeysOfAll(db, row.organisation_id),
  ),
  reading(
    'passkeys',
    'active',
    { given: { status: 'active' }, others: { credential_id: OTHER, status: 'disabled' } },
    (db, row) => findActivePasskey(db, row.credential_id),
  ),
  reading(
    'passkeys',
    'with its owner',
    { given: { status: 'active' }, others: { ...OWN, status: 'disabled' } },
    (db, row) => findPasskeyOf(db, row.organisation_id, row.id),
  ),
  reading(
    'person_consents',
    'open',
    {
      given: PENDING,
      others: { ...AGENTS, connection_id: OTHER, person_id: OTHER, status: 'completed', expires_at: PAST },
    },
    (db, row) =>
      findOpenConsent(
        db,
        {
          organisationId: row.organisation_id,
          agentId: row.agent_id,
          connectionId: row.connection_id,
          personId: row.person_id,
        },
        NOW,
      ),
  ),
  reading(
    'person_consents',
    'count',
    { given: PENDING, others: { organisation_id: OTHER, family_id: OTHER, status: 'completed', expires_at: PAST } },
    (db, row) => countOpenConsents(db, row.organisation_id, row.family_id, NOW),
  ),
  reading(
    'person_sessions',
    'of a browser',
    { given: { expires_at: FUTURE }, others: { cookie_hash: OTHER, expires_at: PAST } },
    (db, row) => listPersonSessions(db, row.cookie_hash, NOW),
  ),
  reading(
    'person_tokens',
    'of a person',
    {
      others: {
        organisation_id: OTHER,
        platform_id: OTHER,
        connection_id: OTHER,
        person_id: OTHER,
        standing: 'obtained',
      },
    },
    (db, row) => listPersonTokens(db, row),
  ),
  reading('person_tokens', 'find', { others: OWN }, (db, row) =>
    findTokens(db, { table: 'person_tokens', ...placeOf(row) }),
  ),
  reading(
    'person_tokens',
    'obtained',
    {
      given: { standing: 'obtained', browser_hash: 'browser' },
      others: { organisation_id: OTHER, consent_id: OTHER, browser_hash: OTHER, standing: 'unconfirmed' },
    },
    (db, row) => findObtainedTokens(db, row.organisation_id, row.consent_id, 'browser'),
  ),
  ...(['id', 'person_id', 'connection_id', 'standing'] as const).map((column) =>
    reading(
      'person_tokens',
      `by ${column}`,
      { others: { organisation_id: OTHER, standing: 'obtained', [column]: column === 'standing' ? 'active' : OTHER } },
      (db, { organisation_id, id, ...row }) =>
        listGivenTokens(
          db,
          organisation_id,
          {
            id: { id },
            person_id: { personId: row.person_id },
            connection_id: { connectionId: row.connection_id },
            standing: { standing: row.standing },
          }[column],
        ),
    ),
  ),
  ...(['standing', 'platform_id', 'created_at'] as const).map((column) =>
    reading(
      'person_tokens',
      `a page by ${column}`,
      {
        given: { standing: 'unconfirmed' },
        others: {
          organisation_id: OTHER,
          standing: 'obtained',
          [column]: { standing: 'kept', platform_id: OTHER, created_at: 0 }[column],
        },
      },
      (db, row) =>
        pageOfGivenTokens(db, row.organisation_id, {
          standing: column === 'standing' ? 'unconfirmed' : undefined,
          ...(column === 'platform_id' && { platformId: row.platform_id }),
          ...(column === 'created_at' && { after: { created_at: row.created_at - 1, id: row.id } }),
          limit: 10,
        }),
    ),
  ),
  reading('persons', 'find', { others: { organisation_id: OTHER, hash: OTHER } }, (db, row) =>
    findPersonId(db, row.organisation_id, row.hash),
  ),
  reading('platform_secrets', 'of a platform', { others: { organisation_id: OTHER, platform_id: OTHER } }, (db, row) =>
    listPlatformSecrets(db, row.organisation_id, row.platform_id),
  ),
  reading(
    'platform_versions',
    'manifest',
    { others: { organisation_id: OTHER, platform_id: OTHER, version: 9 } },
    (db, row) => findManifest(db, row.organisation_id, row.platform_id, row.version),
  ),
  reading('policy_versions', 'rules', { others: { organisation_id: OTHER, policy_id: OTHER, version: 9 } }, (db, row) =>
    findPolicyRules(db, row.organisation_id, row.policy_id, row.version),
  ),
  reading('policy_versions', 'of a policy', { others: { organisation_id: OTHER, policy_id: OTHER } }, (db, row) =>
    listPolicyVersions(db, { organisationId: row.organisation_id, id: row.policy_id }, { limit: 9 }),
  ),
  reading(
    'refusal_counts',
    'count',
    { given: { window_start: NOW }, others: { ...AGENTS, window_start: PAST } },
    (db, row) => refusalsAt(db, row, 500, NOW),
  ),
  reading(
    'registrations',
    'of an owner',
    { given: PENDING, others: { owner_id: OTHER, status: APPROVED, expires_at: PAST } },
    (db, row) => listOpenRegistrations(db, row.owner_id ?? '', NOW),
  ),
  reading(
    'registrations',
    'pending',
    { given: PENDING, others: { organisation_id: OTHER, status: APPROVED, expires_at: PAST } },
    (db, row) => listPendingRegistrations(db, row.organisation_id ?? '', NOW),
  ),
  reading('standing_approvals', 'terms', { others: OWN }, (db, row) =>
    findStandingTerms(db, row.organisation_id, row.id),
  ),
  reading(
    'standing_approvals',
    'in force',
    { given: { expires_at: FUTURE }, others: { ...OWN, expires_at: PAST, ended_at: ENDED_BY_OWNER } },
    (db, row) => standsFor(db, row, NOW),
  ),
  reading(
    'standing_approvals',
    'count',
    { given: { expires_at: FUTURE }, others: { ...AGENTS, expires_at: PAST, ended_at: ENDED_BY_OWNER } },
    (db, row) => countStanding(db, row.organisation_id, row.agent_id, NOW),
  ),
  reading('static_keys', 'of an agent', { others: AGENTS }, (db, row) =>
    listStaticKeys(db, { organisation_id: row.organisation_id, id: row.agent_id }),
  ),
  reading(
    'upstream_tokens',
    'find',
    { others: { organisation_id: OTHER, connection_id: OTHER, purpose: OTHER } },
    (db, row) => findUpstreamToken(db, upstream(row)),
  ),
  reading('workloads', 'of an agent', { others: AGENTS }, (db, row) => findWorkloadOf(db, row)),
];
