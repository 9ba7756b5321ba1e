/**
 * Statements that change or delete rows touch only the rows that they name. Each is run beside rows that differ from the named one in a single column:
 * the same ids in another organisation, another agent, another connection, or a row that has ended.
 */
import { type Selectable, sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { countOpenRequests, decideAccessRequest, findOpenRequest } from '../../broker/store/access-requests.ts';
import { findDeeds } from '../../broker/store/agent-deeds.ts';
import { bindKey, findOtherAgentWithKey, isFormerKey, keyReplacedAt } from '../../broker/store/agent-keys.ts';
import {
  deleteGrant,
  findAgent,
  findLiveAgentNamed,
  listGrants,
  moveAgents,
  updateAgent,
} from '../../broker/store/agents.ts';
import {
  correctHeldCall,
  countPending,
  decideHeldCall,
  findApproval,
  holdsRead,
} from '../../broker/store/approvals.ts';
import { findAuditRow } from '../../broker/store/audit.ts';
import { deleteRowsOf } from '../../broker/store/audit-purges.ts';
import { changeSink, deleteSink } from '../../broker/store/audit-sinks.ts';
import {
  claimTrial,
  closeBreaker,
  countBreakersOpenAt,
  listBreakersOpenAt,
  releaseTrial,
} from '../../broker/store/breakers.ts';
import { findCallMarks } from '../../broker/store/call-marks.ts';
import {
  areLiving,
  expireChild,
  freeChildSlot,
  freeChildSlots,
  listLivingChildren,
  listOverdueChildren,
  reserveChildSlot,
} from '../../broker/store/children.ts';
import { storeTest } from '../../broker/store/connection-outcomes.ts';
import {
  changeConnection,
  clearDefaultConnection,
  deleteConnection,
  findConnection,
  replaceCredential,
  setCredentialStatus,
  storeResealed,
} from '../../broker/store/connections.ts';
import { endOneTimeTokens } from '../../broker/store/governance.ts';
import { findGuardrailRules, findManifest, findPolicyRules } from '../../broker/store/governed-versions.ts';
import { closeHeldJoin, endHeldJoin, openHeldJoin, recordHeldJoinAnswer } from '../../broker/store/held-joins.ts';
import { putIdempotentAnswer, releaseIdempotencyKey } from '../../broker/store/idempotency.ts';
import { claimInvite, removeInvite } from '../../broker/store/invites.ts';
import {
  endMcpAuthorisation,
  endMcpAuthorisationsOf,
  findLiveAuthorisation,
} from '../../broker/store/mcp-authorisations.ts';
import { endMcpRepeat, findMcpRepeat, holdMcpRepeat } from '../../broker/store/mcp-repeats.ts';
import { acceptOffered, forgetTools } from '../../broker/store/mcp-tools.ts';
import {
  changeChannel,
  deleteChannel,
  deleteChannelNamed,
  deleteChannelsOfOwner,
  findChannel,
  listChannelsOfOwner,
  noteFailing,
} from '../../broker/store/notice-channels.ts';
import { dropDue, findDelivery, listDue, markDelivery } from '../../broker/store/notice-outbox.ts';
import { findOAuthFlow } from '../../broker/store/oauth-flows.ts';
import { claimRefresh, findTokens, releaseRefresh, storeRefreshed } from '../../broker/store/oauth-tokens.ts';
import { deleteObtainedTokens, findObtainedTokens } from '../../broker/store/obtained-tokens.ts';
import { findOneTimeToken, useOneTimeToken } from '../../broker/store/one-time-tokens.ts';
import { listOpenRegistrations, listPendingRegistrations } from '../../broker/store/open-registrations.ts';
import { deleteOwner, endMadeBy, noteSignIn, transferToOwner } from '../../broker/store/organisations.ts';
import { forgetIdentity, pinIdentity } from '../../broker/store/owner-identities.ts';
import {
  clearRestoredCounter,
  disableRegressed,
  findActivePasskey,
  findPasskeyOf,
  listPasskeys,
  listPasskeysOfAll,
  removePasskey,
  renamePasskey,
  usePasskey,
} from '../../broker/store/passkeys.ts';
import {
  deletePersonTokens,
  deleteTokensOfPeople,
  findPersonId,
  listGivenTokens,
  listPersonTokens,
  movePersonTokens,
} from '../../broker/store/people.ts';
import {
  completeConsent,
  countOpenConsents,
  findOpenConsent,
  putConsentFlow,
} from '../../broker/store/person-consents.ts';
import { listPersonSessions } from '../../broker/store/person-sessions.ts';
import { deletePipeline, notePipelineUse } from '../../broker/store/pipelines.ts';
import { deleteNamedPlatformSecret, listPlatformSecrets } from '../../broker/store/platform-secrets.ts';
import { deletePlatform, switchPlatform } from '../../broker/store/platforms.ts';
import { deletePolicy, listPolicyVersions } from '../../broker/store/policies.ts';
import { addCosignature, moveHead } from '../../broker/store/receipt-logs.ts';
import { forgetRefusals, refusalsAt } from '../../broker/store/refusal-counts.ts';
import { decideRegistration, takePrivateKey } from '../../broker/store/registrations.ts';
import { endIntendedReplay, moveReplay, takeClaim } from '../../broker/store/replays.ts';
import type { Schema } from '../../broker/store/schema.ts';
import {
  endSecretAuthorizationsOf,
  removeSecretAuthorization,
  useSecretAuthorization,
} from '../../broker/store/secret-authorizations.ts';
import {
  countStanding,
  endStandingApproval,
  endStandingOfAgents,
  endStandingOfGrants,
  findStandingTerms,
  standsFor,
  useStandingApproval,
} from '../../broker/store/standing-approvals.ts';
import { endStaticKey, endStaticKeysFor, endStaticKeysOf, listStaticKeys } from '../../broker/store/static-keys.ts';
import type { Db } from '../../broker/store/store.ts';
import { inTransaction, rollback } from '../../broker/store/transaction.ts';
import {
  deleteUpstreamTokens,
  findUpstreamToken,
  releaseUpstreamToken,
  renewUpstreamToken,
  storeUpstreamToken,
} from '../../broker/store/upstream-tokens.ts';
import { deleteWorkload, findWorkloadOf } from '../../broker/store/workloads.ts';
import { furnish, type StoredRow, storedRows } from '../world/full-organisation.ts';
import { startWorld, type World } from '../world/world.ts';

type Table = keyof Schema;
type Row<T extends Table> = Selectable<Schema[T]>;
/** Stands for any other value: of another row of the same kind. */
const OTHER = Symbol('other');
type Others<T extends Table> = { [Column in keyof Row<T>]?: Row<T>[Column] | typeof OTHER | Partial<Row<T>> };
/** A row beside the named one, or in its place, which must stay as it is: named after the column in which it differs. */
type Neighbour = { name: string; row: Record<string, unknown> };
type Case = {
  what: string;
  table: Table;
  given: object;
  others: object;
  run: (db: Db, row: never) => Promise<unknown>;
  /** Whether the statement reads: then its result is compared, and not the rows. */
  reads?: true;
};

const [PAST, NOW, FUTURE] = [1_000, 2_000, 3_000];
const BYTES = Buffer.from('bytes');
const TOKENS = { credential: BYTES, refreshToken: null, tokenId: 'new', oauth: '{}', upstreamScopes: null };
/** Columns of unique indexes with a list of allowed values. */
const LISTED = new Set(['cause', 'kind', 'step']);
/** The ids of an organisation and of a row. */
const OWN = { organisation_id: OTHER, id: OTHER } as const;

/**
 * `given`: columns of the named row. `others`: for each column, the value in a row that must stay as it is, or the values of several columns that depend on
 * each other.
 */
function of<T extends Table>(
  table: T,
  what: string,
  { given = {}, others }: { given?: Partial<Row<T>>; others: Others<T> },
  run: (db: Db, row: Row<T>) => Promise<unknown>,
): Case {
  return { what, table, given, others, run };
}

/** The same for a statement that reads the named row. */
const reading = <T extends Table>(...given: Parameters<typeof of<T>>): Case => ({ ...of(...given), reads: true });

const decision = { at: NOW, by: 'owner', note: null, auditId: 'audit' };
const agentOf = (row: { organisation_id: string; agent_id: string }) => ({
  organisationId: row.organisation_id,
  id: row.agent_id,
});
const placeOf = (row: { organisation_id: string; id: string }) => ({ organisationId: row.organisation_id, id: row.id });
const upstream = (row: Row<'upstream_tokens'>) => ({
  organisationId: row.organisation_id,
  connectionId: row.connection_id,
  purpose: row.purpose,
});

const PENDING = { status: 'pending', expires_at: FUTURE } as const;
const UNLESS_PENDING = { ...OWN, expires_at: PAST };
const DENIED = { status: 'denied', decided_at: PAST, decided_by: 'owner', decision_audit_id: 'audit' } as const;
const BREAKER = { organisation_id: OTHER, agent_id: OTHER, cause: 'breaker_api_error', key: OTHER } as const;
const CLAIMED = { claimed_at: PAST, agent_id: 'agent' };
const ENDED_BY_OWNER = { ended_at: PAST, ended_because: 'owner' } as const;
const UNUSED = { used_at: null, expires_at: FUTURE } as const;
const REFRESHING = { refresh_claim: 'claim' } as const;

const REPLAY = {
  decision_audit_id: 'decision',
  status: 'approved',
  decided_at: PAST,
  decided_by: 'owner',
  decided_how: 'api',
  fence: 1,
  lease_owner: 'me',
} as const;
const CLAIMED_REPLAY = { ...REPLAY, exec_state: 'claimed' } as const;
const BEGUN_REPLAY = { ...REPLAY, exec_state: 'intent', replay_audit_id: 'audit' } as const;
const FAILED = { exec_state: 'failed', executed_at: null, execution_error: 'why' } as const;
const APPROVED = {
  status: 'approved',
  decided_at: PAST,
  decided_by: 'owner',
  decision_audit_id: 'audit',
  granted: '[]',
  private_key: BYTES,
  claim_until: FUTURE,
} as const;

const CASES: Case[] = [
  of('access_requests', 'decide', { given: PENDING, others: { ...UNLESS_PENDING, status: DENIED } }, (db, row) =>
    decideAccessRequest(db, row, { ...decision, status: 'denied', granted: null }),
  ),
  of('agents', 'move', { given: { status: 'active' }, others: { ...OWN, status: 'suspended' } }, (db, row) =>
    moveAgents(db, placeOf(row), { from: ['active'], to: 'revoked', cause: 'owner_manual', detail: null }, NOW),
  ),
  of('agents', 'update', { others: OWN }, (db, row) => updateAgent(db, row.organisation_id, row.id, { name: 'new' })),
  of('agents', 'hand over', { others: OWN }, (db, row) =>
    updateAgent(db, row.organisation_id, row.id, { owner_id: crypto.randomUUID() }),
  ),
  of(
    'agents',
    'hand over children',
    { given: { parent_id: 'parent' }, others: { organisation_id: OTHER, parent_id: OTHER } },
    (db, row) => updateAgent(db, row.organisation_id, 'parent', { owner_id: crypto.randomUUID() }),
  ),
  of('agents', 'bind a key', { given: { status: 'active' }, others: { ...OWN, status: 'revoked' } }, (db, row) =>
    bindKey(db, placeOf(row), { pem: 'pem', fingerprint: 'new' }, NOW),
  ),
  of(
    'agents',
    'reserve a child slot',
    {
      given: { status: 'active', live_children: 1 },
      others: { ...OWN, status: 'suspended', live_children: 2, expires_at: PAST },
    },
    (db, row) => reserveChildSlot(db, placeOf(row), 2, NOW),
  ),
  of('agents', 'free a child slot', { given: { live_children: 1 }, others: { ...OWN, live_children: 0 } }, (db, row) =>
    freeChildSlot(db, placeOf(row)),
  ),
  of('agents', 'free all child slots', { given: { live_children: 1 }, others: OWN }, (db, row) =>
    freeChildSlots(db, placeOf(row)),
  ),
  of(
    'agents',
    'expire a child',
    { given: { status: 'active', expires_at: PAST }, others: { ...OWN, status: 'revoked', expires_at: FUTURE } },
    (db, row) => expireChild(db, placeOf(row), NOW),
  ),
  of(
    'approvals',
    'decide',
    { given: PENDING, others: { ...UNLESS_PENDING, request_hash: OTHER, status: { ...DENIED, decided_how: 'api' } } },
    (db, row) => decideHeldCall(db, row, { ...decision, status: 'denied', how: 'api', with: null, instanceId: 'me' }),
  ),
  of(
    'approvals',
    'correct',
    { given: PENDING, others: { ...UNLESS_PENDING, request_hash: OTHER, status: { ...DENIED, decided_how: 'api' } } },
    (db, row) =>
      correctHeldCall(db, row, { by: 'owner', at: NOW, request_hash: 'new' } as Parameters<typeof correctHeldCall>[2]),
  ),
  of(
    'approvals',
    'begin the replay',
    { given: CLAIMED_REPLAY, others: { ...OWN, fence: 2, exec_state: BEGUN_REPLAY } },
    (db, row) => moveReplay(db, row, 'mine', { exec_state: 'intent' }),
  ),
  of(
    'approvals',
    'finish the replay',
    { given: BEGUN_REPLAY, others: { ...OWN, fence: 2, replay_audit_id: 'other' } },
    (db, row) => moveReplay(db, row, 'audit', FAILED),
  ),
  of(
    'approvals',
    'end the replay',
    {
      given: BEGUN_REPLAY,
      others: { ...OWN, exec_state: { ...CLAIMED_REPLAY, replay_audit_id: null }, replay_audit_id: 'other' },
    },
    (db, row) => endIntendedReplay(db, row, 'audit', FAILED),
  ),
  of(
    'approvals',
    'take the claim over',
    { given: CLAIMED_REPLAY, others: { ...OWN, exec_state: BEGUN_REPLAY, fence: 2 } },
    (db, row) => takeClaim(db, row, 'other'),
  ),
  of('audit_rows', 'delete', { others: OWN }, (db, row) => deleteRowsOf(db, row.organisation_id, [row.id])),
  of('audit_sinks', 'change', { others: OWN }, (db, row) => changeSink(db, row, { name: 'new' })),
  of('audit_sinks', 'delete', { others: OWN }, (db, row) => deleteSink(db, row)),
  of(
    'breakers',
    'claim the trial',
    { given: { open_until: PAST, trial_at: null }, others: { ...BREAKER, open_until: FUTURE, trial_at: NOW } },
    (db, row) => claimTrial(db, row, 500, NOW),
  ),
  of('breakers', 'release the trial', { given: { trial_at: NOW }, others: { ...BREAKER, trial_at: PAST } }, (db, row) =>
    releaseTrial(db, row, NOW),
  ),
  of('breakers', 'close', { given: { open_until: PAST }, others: { ...BREAKER, open_until: FUTURE } }, (db, row) =>
    closeBreaker(db, row, NOW),
  ),
  of('connections', 'store a test', { others: OWN }, (db, row) =>
    storeTest(db, row, { at: NOW, revision: 9, ok: false, upstreamStatus: null, detail: 'why' }),
  ),
  of('connections', 'change', { others: OWN }, (db, row) =>
    changeConnection(db, { organisation_id: row.organisation_id, id: row.id, wait_ms: 9 }),
  ),
  of(
    'connections',
    'clear the default',
    { given: { is_default: 1 }, others: { organisation_id: OTHER, platform_id: OTHER } },
    (db, row) => clearDefaultConnection(db, row.organisation_id, row.platform_id),
  ),
  of('connections', 'replace the credential', { others: OWN }, (db, row) => replaceCredential(db, placeOf(row), BYTES)),
  of('connections', 'reseal', { others: OWN }, (db, row) => storeResealed(db, placeOf(row), BYTES)),
  of('connections', 'set the status', { given: { status: 'active' }, others: OWN }, (db, row) =>
    setCredentialStatus(db, { table: 'connections', ...placeOf(row) }, 'reauth_needed'),
  ),
  of('connections', 'delete', { others: OWN }, (db, row) => deleteConnection(db, row.organisation_id, row.id, NOW)),
  of(
    'connections',
    'claim a refresh',
    {
      given: { token_id: 'token', refresh_token: BYTES },
      others: { ...OWN, token_id: OTHER, refresh_token: null, refresh_claim: 'other' },
    },
    (db, row) =>
      claimRefresh(
        db,
        { table: 'connections', ...placeOf(row) },
        { tokenId: 'token', name: 'me', now: NOW, until: FUTURE, abandoned: false },
      ),
  ),
  of('connections', 'store a refresh', { given: REFRESHING, others: { ...OWN, refresh_claim: 'other' } }, (db, row) =>
    storeRefreshed(db, { table: 'connections', ...placeOf(row) }, 'claim', { ...TOKENS, status: 'active' }),
  ),
  of('connections', 'release a refresh', { given: REFRESHING, others: { ...OWN, refresh_claim: 'other' } }, (db, row) =>
    releaseRefresh(db, { table: 'connections', ...placeOf(row) }, 'claim', { until: FUTURE }),
  ),
  of('grants', 'delete', { others: OWN }, (db, row) => deleteGrant(db, row.organisation_id, row.id, NOW)),
  of(
    'held_joins',
    'open',
    {
      given: { open_until: PAST },
      others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER, open_until: FUTURE },
    },
    (db, row) => openHeldJoin(db, row, NOW),
  ),
  of(
    'held_joins',
    'close',
    {
      given: { open_until: PAST },
      others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER, open_until: FUTURE },
    },
    (db, row) => closeHeldJoin(db, row, NOW),
  ),
  of(
    'held_joins',
    'record the answer',
    {
      given: { told_at: null },
      others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER, told_at: PAST },
    },
    (db, row) => recordHeldJoinAnswer(db, row, NOW),
  ),
  of('held_joins', 'end', { others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER } }, (db, row) =>
    endHeldJoin(db, row),
  ),
  of(
    'idempotency_keys',
    'store the answer',
    { others: { organisation_id: OTHER, agent_id: OTHER, key_hash: OTHER, audit_id: OTHER } },
    (db, row) => putIdempotentAnswer(db, row, { status: 299, sealed: null }),
  ),
  of(
    'idempotency_keys',
    'release',
    { others: { organisation_id: OTHER, agent_id: OTHER, key_hash: OTHER, audit_id: OTHER } },
    (db, row) => releaseIdempotencyKey(db, row),
  ),
  of(
    'invites',
    'claim',
    { given: { claimed_at: null, expires_at: FUTURE }, others: { ...OWN, claimed_at: CLAIMED, expires_at: PAST } },
    (db, row) => claimInvite(db, row, 'agent', NOW),
  ),
  of('invites', 'remove', { given: { claimed_at: null }, others: { ...OWN, claimed_at: CLAIMED } }, (db, row) =>
    removeInvite(db, row.organisation_id, row.id),
  ),
  of(
    'invites',
    'end with the rights of an owner',
    { given: { claimed_at: null }, others: { organisation_id: OTHER, owner_id: OTHER, claimed_at: CLAIMED } },
    (db, row) => endMadeBy(db, { organisation_id: row.organisation_id, id: row.owner_id }),
  ),
  of('invites', 'delete with an owner', { others: { organisation_id: OTHER, owner_id: OTHER } }, (db, row) =>
    deleteOwner(db, row.organisation_id, row.owner_id, NOW),
  ),
  of(
    'mcp_authorisations',
    'end',
    { given: { ended_at: null }, others: { id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endMcpAuthorisation(db, row.id, 'owner', NOW),
  ),
  of(
    'mcp_authorisations',
    'end with an agent',
    { given: { ended_at: null }, others: { organisation_id: OTHER, agent_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endMcpAuthorisationsOf(db, agentOf(row), NOW),
  ),
  of(
    'mcp_authorisations',
    'transfer to another owner',
    { others: { organisation_id: OTHER, owner_id: OTHER } },
    (db, row) => transferToOwner(db, { organisationId: row.organisation_id, from: row.owner_id, to: 'new' }),
  ),
  of(
    'mcp_repeats',
    'hold',
    { others: { organisation_id: OTHER, agent_id: OTHER, hash: OTHER, key: OTHER } },
    (db, { organisation_id, agent_id, hash, key }) =>
      holdMcpRepeat(db, { organisation_id, agent_id, hash, key }, { approval_id: 'new', expires_at: FUTURE }),
  ),
  of(
    'mcp_repeats',
    'end',
    { others: { organisation_id: OTHER, agent_id: OTHER, hash: OTHER, key: OTHER } },
    (db, { organisation_id, agent_id, hash, key }) => endMcpRepeat(db, { organisation_id, agent_id, hash, key }),
  ),
  of('notice_channels', 'change', { others: OWN }, (db, row) => changeChannel(db, row, { last_error: 'why' } as never)),
  of('notice_channels', 'delete', { others: OWN }, (db, row) => deleteChannel(db, row)),
  of('notice_channels', 'delete by name', { others: { organisation_id: OTHER, name: OTHER } }, (db, row) =>
    deleteChannelNamed(db, row.organisation_id, row.name),
  ),
  of(
    'notice_channels',
    'delete with an owner',
    { given: { owner_id: 'owner' }, others: { organisation_id: OTHER, owner_id: OTHER } },
    (db, row) => deleteChannelsOfOwner(db, { organisation_id: row.organisation_id, id: 'owner' }),
  ),
  of(
    'notice_channels',
    'note a failure',
    { given: { owner_id: null, status: 'active' }, others: { ...OWN, status: 'gone' } },
    (db, row) => noteFailing(db, row, 'failing', 'why'),
  ),
  of('notice_channels', 'delete the device that is gone', { given: { owner_id: 'owner' }, others: OWN }, (db, row) =>
    noteFailing(db, row, 'gone', 'why'),
  ),
  of(
    'notice_deliveries',
    'drop',
    {
      given: { state: 'due', step: 'first', event: 'agent_suspended' },
      others: {
        organisation_id: OTHER,
        subject_id: OTHER,
        event: 'passkey_added',
        step: 'outcome',
        state: 'sent',
      },
    },
    (db, row) => dropDue(db, row),
  ),
  of('notice_deliveries', 'mark', { others: OWN }, (db, row) => markDelivery(db, row, { attempts: 9 })),
  of(
    'one_time_tokens',
    'use',
    { given: UNUSED, others: { token_hash: OTHER, kind: 'bootstrap', used_at: PAST, expires_at: PAST } },
    (db, row) => useOneTimeToken(db, row.kind, row.token_hash, NOW),
  ),
  of(
    'one_time_tokens',
    'end',
    { given: { used_at: null }, others: { organisation_id: OTHER, kind: 'bootstrap', subject: OTHER, used_at: PAST } },
    (db, row) =>
      endOneTimeTokens(db, { organisationId: row.organisation_id, kind: row.kind, subject: row.subject }, NOW),
  ),
  of(
    'one_time_tokens',
    'end with the rights of an owner',
    { given: { used_at: null, made_by: 'owner' }, others: { organisation_id: OTHER, made_by: OTHER, used_at: PAST } },
    (db, row) => endMadeBy(db, { organisation_id: row.organisation_id, id: 'owner' }),
  ),
  of('owners', 'note the sign-in', { others: OWN }, (db, row) => noteSignIn(db, row, NOW)),
  of(
    'owners',
    'link an identity',
    { given: { oidc_subject: null }, others: { ...OWN, oidc_subject: 'other' } },
    (db, row) => pinIdentity(db, row, 'new'),
  ),
  of('owners', 'unlink an identity', { given: { oidc_subject: 'subject' }, others: OWN }, (db, row) =>
    forgetIdentity(db, row, NOW),
  ),
  of('owners', 'delete', { others: OWN }, (db, row) => deleteOwner(db, row.organisation_id, row.id, NOW)),
  of(
    'passkeys',
    'use',
    { given: { status: 'active', counter: 1 }, others: { ...OWN, status: 'disabled', counter: 2 } },
    (db, row) => usePasskey(db, row, { counter: 2, at: NOW, may: 'sign_in' }),
  ),
  of(
    'passkeys',
    'disable',
    { given: { status: 'active', counter: 2 }, others: { ...OWN, status: 'removed', counter: 1 } },
    (db, row) => disableRegressed(db, row, 2),
  ),
  of('passkeys', 'clear the mark', { given: { restored_counter: 1 }, others: { ...OWN } }, (db, row) =>
    clearRestoredCounter(db, row),
  ),
  of(
    'passkeys',
    'rename',
    { given: { status: 'active' }, others: { ...OWN, owner_id: OTHER, status: 'removed' } },
    (db, row) => renamePasskey(db, { organisationId: row.organisation_id, ownerId: row.owner_id }, row.id, 'new'),
  ),
  of(
    'passkeys',
    'remove',
    { given: { status: 'active' }, others: { ...OWN, owner_id: OTHER, status: 'removed' } },
    (db, row) => removePasskey(db, { organisationId: row.organisation_id, ownerId: row.owner_id }, row.id),
  ),
  of(
    'passkeys',
    'remove a disabled one',
    { given: { status: 'disabled' }, others: { ...OWN, owner_id: OTHER } },
    (db, row) => removePasskey(db, { organisationId: row.organisation_id, ownerId: row.owner_id }, row.id),
  ),
  of('passkeys', 'delete with an owner', { others: { organisation_id: OTHER, owner_id: OTHER } }, (db, row) =>
    deleteOwner(db, row.organisation_id, row.owner_id, NOW),
  ),
  of(
    'person_consents',
    'begin',
    { given: PENDING, others: { id: OTHER, status: 'completed', expires_at: PAST } },
    (db, row) =>
      putConsentFlow(db, row.id, { browserHash: 'browser', stateHash: 'state', flow: BYTES, now: NOW, goesOn: false }),
  ),
  of(
    'person_consents',
    'complete',
    { given: PENDING, others: { id: OTHER, status: 'completed', expires_at: PAST } },
    (db, row) => completeConsent(db, row.id, NOW),
  ),
  of(
    'person_tokens',
    'move',
    { given: { standing: 'unconfirmed' }, others: { ...OWN, standing: 'obtained' } },
    (db, row) => movePersonTokens(db, placeOf(row), 'unconfirmed', 'active' as never),
  ),
  of('person_tokens', 'delete', { others: OWN }, (db, row) => deletePersonTokens(db, row.organisation_id, [row.id])),
  of(
    'person_tokens',
    'delete obtained ones',
    { given: { standing: 'obtained' }, others: { organisation_id: OTHER, consent_id: OTHER, standing: 'unconfirmed' } },
    (db, row) => deleteObtainedTokens(db, row.organisation_id, row.consent_id),
  ),
  of(
    'person_tokens',
    'delete with a connection',
    { others: { organisation_id: OTHER, connection_id: OTHER } },
    (db, row) => deleteTokensOfPeople(db, row.organisation_id, row.connection_id),
  ),
  of('pipelines', 'note the use', { others: OWN }, (db, row) => notePipelineUse(db, row, NOW)),
  of('pipelines', 'delete', { others: OWN }, (db, row) => deletePipeline(db, row)),
  of('platform_secrets', 'delete', { others: { organisation_id: OTHER, platform_id: OTHER, name: OTHER } }, (db, row) =>
    deleteNamedPlatformSecret(db, { organisationId: row.organisation_id, platformId: row.platform_id, name: row.name }),
  ),
  of(
    'platform_secrets',
    'delete with a platform',
    { others: { organisation_id: OTHER, platform_id: OTHER } },
    (db, row) => deletePlatform(db, row.organisation_id, row.platform_id),
  ),
  of(
    'platforms',
    'suspend',
    { given: { suspended: 0 }, others: { organisation_id: OTHER, platform_id: OTHER } },
    (db, row) =>
      switchPlatform(db, { organisationId: row.organisation_id, platformId: row.platform_id }, { suspended: true }),
  ),
  of('platforms', 'delete', { others: { organisation_id: OTHER, platform_id: OTHER } }, (db, row) =>
    deletePlatform(db, row.organisation_id, row.platform_id),
  ),
  of('policies', 'delete', { others: OWN }, (db, row) => deletePolicy(db, row.organisation_id, row.id)),
  of('receipt_logs', 'move the head', { given: { size: 1 }, others: { organisation_id: OTHER, size: 5 } }, (db, row) =>
    moveHead(db, { ...row, size: 2, root: 'new', from: 1 }),
  ),
  of('log_checkpoints', 'add a cosignature', { others: { organisation_id: OTHER, size: 1 } }, (db, row) =>
    addCosignature(db, row, 'line'),
  ),
  of('refusal_counts', 'forget', { others: { organisation_id: OTHER, agent_id: OTHER } }, (db, row) =>
    forgetRefusals(db, row.organisation_id, row.agent_id),
  ),
  of('registrations', 'decide', { given: PENDING, others: { ...UNLESS_PENDING, status: APPROVED } }, (db, row) =>
    decideRegistration(
      db,
      { organisation_id: row.organisation_id ?? '', id: row.id },
      { ...decision, status: 'rejected', granted: null, private_key: null, claim_until: null },
    ),
  ),
  of(
    'registrations',
    'take the private key',
    { given: APPROVED, others: { ...OWN, private_key: { private_key: null, claimed_at: PAST }, claim_until: PAST } },
    (db, row) => takePrivateKey(db, { organisation_id: row.organisation_id ?? '', id: row.id }, NOW),
  ),
  of(
    'registrations',
    'delete with an owner',
    { given: { owner_id: 'owner' }, others: { organisation_id: OTHER, owner_id: OTHER } },
    (db, row) => deleteOwner(db, row.organisation_id ?? '', 'owner', NOW),
  ),
  of(
    'secret_authorizations',
    'use',
    { given: UNUSED, others: { ...OWN, used_at: { used_at: PAST, connection_id: 'connection' }, expires_at: PAST } },
    (db, row) => useSecretAuthorization(db, row, 'connection', NOW),
  ),
  of(
    'secret_authorizations',
    'remove',
    { given: { used_at: null }, others: { ...OWN, used_at: { used_at: PAST, connection_id: 'connection' } } },
    (db, row) => removeSecretAuthorization(db, row.organisation_id, row.id),
  ),
  of(
    'secret_authorizations',
    'end with an agent',
    {
      given: UNUSED,
      others: {
        organisation_id: OTHER,
        agent_id: OTHER,
        used_at: { used_at: PAST, connection_id: 'connection' },
        expires_at: PAST,
      },
    },
    (db, row) => endSecretAuthorizationsOf(db, agentOf(row), NOW),
  ),
  of(
    'secret_authorizations',
    'end with the rights of an owner',
    {
      given: { used_at: null },
      others: { organisation_id: OTHER, owner_id: OTHER, used_at: { used_at: PAST, connection_id: 'connection' } },
    },
    (db, row) => endMadeBy(db, { organisation_id: row.organisation_id, id: row.owner_id }),
  ),
  of(
    'standing_approvals',
    'use',
    {
      given: { expires_at: FUTURE, uses_left: 1 },
      others: { ...OWN, uses_left: 0, expires_at: PAST, ended_at: ENDED_BY_OWNER },
    },
    (db, row) => useStandingApproval(db, row, NOW),
  ),
  of(
    'standing_approvals',
    'end',
    { given: { expires_at: FUTURE }, others: { ...OWN, expires_at: PAST, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStandingApproval(db, row, 'owner', NOW),
  ),
  of(
    'standing_approvals',
    'end with an agent',
    { others: { organisation_id: OTHER, agent_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStandingOfAgents(db, row.organisation_id, [row.agent_id], NOW),
  ),
  of(
    'standing_approvals',
    'end with a grant',
    { others: { organisation_id: OTHER, grant_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStandingOfGrants(db, row.organisation_id, [row.grant_id], NOW),
  ),
  of(
    'static_keys',
    'end',
    { given: { expires_at: FUTURE }, others: { ...OWN, expires_at: PAST, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStaticKey(db, row, NOW),
  ),
  of(
    'static_keys',
    'end with an agent',
    { others: { organisation_id: OTHER, agent_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStaticKeysOf(db, agentOf(row), NOW),
  ),
  of(
    'static_keys',
    'end with a connection',
    { others: { organisation_id: OTHER, connection_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStaticKeysFor(db, { organisationId: row.organisation_id, id: row.connection_id }, NOW),
  ),
  of(
    'tools',
    'forget',
    { others: { organisation_id: OTHER, platform_id: OTHER, server: OTHER, name: OTHER } },
    (db, row) =>
      forgetTools(db, { organisationId: row.organisation_id, platformId: row.platform_id, server: row.server }, [
        row.name,
      ]),
  ),
  of(
    'tools',
    'accept',
    { others: { organisation_id: OTHER, platform_id: OTHER, server: OTHER, name: OTHER, offered_hash: OTHER } },
    (db, row) =>
      acceptOffered(
        db,
        { organisationId: row.organisation_id, platformId: row.platform_id, server: row.server },
        { name: row.name, hash: row.offered_hash, by: 'owner', effect: 'reads', effectBy: null },
        NOW,
      ),
  ),
  ...(
    [
      ['renew', (db, row) => renewUpstreamToken(db, upstream(row), { name: 'claim', until: FUTURE })],
      [
        'store',
        (db, row) =>
          storeUpstreamToken(db, upstream(row), 'claim', {
            id: 'new',
            token: BYTES,
            refresh_at: NOW,
            expires_at: FUTURE,
          }),
      ],
      ['release', (db, row) => releaseUpstreamToken(db, upstream(row), 'claim')],
    ] satisfies [string, (db: Db, row: Row<'upstream_tokens'>) => Promise<unknown>][]
  ).map(([what, run]) =>
    of(
      'upstream_tokens',
      what,
      {
        given: { claim: 'claim' },
        others: { organisation_id: OTHER, connection_id: OTHER, purpose: OTHER, claim: OTHER },
      },
      run,
    ),
  ),
  of(
    'upstream_tokens',
    'delete with a connection',
    { others: { organisation_id: OTHER, connection_id: OTHER } },
    (db, row) => deleteUpstreamTokens(db, upstream(row)),
  ),
  of('workloads', 'delete', { others: { organisation_id: OTHER, agent_id: OTHER } }, (db, row) =>
    deleteWorkload(db, row),
  ),
];

const AGENTS = { organisation_id: OTHER, agent_id: OTHER } as const;
const LIVE = { status: 'active', expires_at: FUTURE } as const;

const READS: Case[] = [
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
  reading('agent_deeds', 'find', { others: { ...AGENTS, hash: OTHER } }, (db, row) => findDeeds(db, row, [row.hash])),
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

const newValues = (columns: readonly (string | undefined)[]) =>
  Object.fromEntries(columns.map((column) => [column ?? '', crypto.randomUUID()]));

const isNothing = (result: unknown): boolean =>
  !result || (Array.isArray(result) && result.length === 0) || (result instanceof Map && result.size === 0);

describe('statements read, change and delete only the rows that they name', () => {
  let world: World;
  let stored: readonly StoredRow[];
  const db = () => world.running.broker.store.db;
  beforeAll(async () => {
    // Both stores run the same statements.
    world = await startWorld('sqlite');
    const { organisation } = await furnish(world, 'alpha');
    stored = await storedRows(db(), organisation.id);
    // Rows are copied without those that they refer to.
    await sql`pragma foreign_keys = off`.execute(db());
  });

  /** Returns the columns of each unique index of a table. */
  const uniqueIn = async (table: Table): Promise<string[][]> => {
    const { rows } = await sql<{ name: string; column: string }>`
      select l.name, i.name as "column" from pragma_index_list(${table}) as l, pragma_index_info(l.name) as i
      where l."unique" = 1 order by l.name, i.seqno`.execute(db());
    return Object.values(Object.groupBy(rows, ({ name }) => name)).map((one = []) => one.map(({ column }) => column));
  };

  test.each([...CASES, ...READS].map((one) => [`${one.table}: ${one.what}`, one] as const))(
    '%s',
    async (_name, one) => {
      const { table, given, others, run, reads = false } = one;
      const template = stored.find((found) => found.table === table)?.row;
      expect(template, 'a row to copy').toBeDefined();
      const unique = await uniqueIn(table);
      const named: Record<string, unknown> = { ...template, ...given };
      /** Stores these rows and runs the statement for the named one. Returns its result, and which rows were changed or deleted. */
      const tried = async (rows: readonly Neighbour[]): Promise<{ result: unknown; touched: string[] }> => {
        const touched: string[] = [];
        let result: unknown;
        await inTransaction(db(), async (tx) => {
          await tx.deleteFrom(table).execute();
          for (const { row } of rows)
            await tx
              .insertInto(table)
              .values(row as never)
              .execute();
          const read = async () => {
            const found = await sql<{
              nth: number;
            }>`select rowid as nth, * from ${sql.table(table)} order by rowid`.execute(tx);
            return new Map(found.rows.map((row) => [row.nth, JSON.stringify(row)]));
          };
          const before = [...(await read())];
          result = await run(tx, named as never);
          const after = await read();
          for (const [i, [nth, text]] of before.entries())
            if (after.get(nth) !== text) touched.push(rows[i]?.name ?? '');
          return rollback('tried');
        });
        return { result, touched };
      };
      const beside: Neighbour[] = [];
      for (const [name, value] of Object.entries(others)) {
        const isRow = typeof value === 'object' && value !== null;
        const row = { ...named, ...(isRow ? value : { [name]: value === OTHER ? crypto.randomUUID() : value }) };
        const taken = unique.filter((columns) => columns.every((column) => row[column] === named[column]));
        const free = taken.map((columns) => columns.findLast((column) => !(column in others) && !LISTED.has(column)));
        if (!free.includes(undefined)) beside.push({ name, row: { ...row, ...newValues(free) } });
        else {
          const { result, touched } = await tried([{ name, row }]);
          expect(touched, name).toEqual([]);
          if (reads) expect(isNothing(result), `${name}: ${JSON.stringify(result)}`).toBe(true);
        }
      }
      // The named row comes last, so that a statement for a single row would find another one first.
      const all = await tried([...beside, { name: 'named', row: named }]);
      expect(all.touched).toEqual(reads ? [] : ['named']);
      if (!reads) return;
      const alone = await tried([{ name: 'named', row: named }]);
      expect(isNothing(alone.result)).toBe(false);
      expect(all.result).toEqual(alone.result);
      const without = await tried(beside);
      expect(isNothing(without.result), JSON.stringify(without.result)).toBe(true);
    },
  );
});
