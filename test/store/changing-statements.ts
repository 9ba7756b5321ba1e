/** Statements that change or delete rows, for named-rows.test.ts. */
import { decideAccessRequest } from '../../broker/store/access-requests.ts';
import { bindKey } from '../../broker/store/agent-keys.ts';
import { deleteGrant, moveAgents, updateAgent } from '../../broker/store/agents.ts';
import { deleteRowsOf } from '../../broker/store/audit-purges.ts';
import { changeSink, deleteSink } from '../../broker/store/audit-sinks.ts';
import { claimTrial, closeBreaker, releaseTrial } from '../../broker/store/breakers.ts';
import { expireChild, freeChildSlot, freeChildSlots, reserveChildSlot } from '../../broker/store/children.ts';
import { storeTest } from '../../broker/store/connection-outcomes.ts';
import {
  changeConnection,
  clearDefaultConnection,
  deleteConnection,
  replaceCredential,
  setCredentialStatus,
  storeResealed,
} from '../../broker/store/connections.ts';
import { correctHeldCall, decideHeldCall, withdrawApprovals } from '../../broker/store/decisions.ts';
import { endOneTimeTokens } from '../../broker/store/governance.ts';
import { closeHeldJoin, endHeldJoin, openHeldJoin, recordHeldJoinAnswer } from '../../broker/store/held-joins.ts';
import { putIdempotentAnswer, releaseIdempotencyKey } from '../../broker/store/idempotency.ts';
import { claimInvite, removeInvite } from '../../broker/store/invites.ts';
import { endMcpAuthorisation, endMcpAuthorisationsOf } from '../../broker/store/mcp-authorisations.ts';
import { endMcpRepeat, holdMcpRepeat } from '../../broker/store/mcp-repeats.ts';
import { acceptOffered, forgetTools } from '../../broker/store/mcp-tools.ts';
import {
  changeChannel,
  deleteChannel,
  deleteChannelNamed,
  deleteChannelsOfOwner,
  noteFailing,
} from '../../broker/store/notice-channels.ts';
import { dropDue, markDelivery } from '../../broker/store/notice-deliveries.ts';
import { claimRefresh, releaseRefresh, storeRefreshed } from '../../broker/store/oauth-tokens.ts';
import { deleteObtainedTokens } from '../../broker/store/obtained-tokens.ts';
import { useOneTimeToken } from '../../broker/store/one-time-tokens.ts';
import { deleteOwner, endMadeBy, noteSignIn, transferToOwner } from '../../broker/store/organisations.ts';
import { forgetIdentity, pinIdentity } from '../../broker/store/owner-identities.ts';
import {
  clearRestoredCounter,
  disableRegressed,
  removePasskey,
  renamePasskey,
  usePasskey,
} from '../../broker/store/passkeys.ts';
import { deletePersonTokens, deleteTokensOfPeople, movePersonTokens } from '../../broker/store/people.ts';
import { completeConsent, putConsentFlow } from '../../broker/store/person-consents.ts';
import { deletePipeline, notePipelineUse } from '../../broker/store/pipelines.ts';
import { deleteNamedPlatformSecret } from '../../broker/store/platform-secrets.ts';
import { deletePlatform, switchPlatform } from '../../broker/store/platforms.ts';
import { deletePolicy } from '../../broker/store/policies.ts';
import { addCosignature, moveHead } from '../../broker/store/receipt-logs.ts';
import { forgetRefusals } from '../../broker/store/refusal-counts.ts';
import { decideRegistration, takePrivateKey } from '../../broker/store/registrations.ts';
import { endIntendedReplay, moveReplay, takeClaim } from '../../broker/store/replays.ts';
import {
  endSecretAuthorizationsOf,
  removeSecretAuthorization,
  useSecretAuthorization,
} from '../../broker/store/secret-authorizations.ts';
import {
  endStandingApproval,
  endStandingOfAgents,
  endStandingOfGrants,
  useStandingApproval,
} from '../../broker/store/standing-approvals.ts';
import { endStaticKey, endStaticKeysFor, endStaticKeysOf } from '../../broker/store/static-keys.ts';
import type { Db } from '../../broker/store/store.ts';
import {
  deleteUpstreamTokens,
  releaseUpstreamToken,
  renewUpstreamToken,
  storeUpstreamToken,
} from '../../broker/store/upstream-tokens.ts';
import { deleteWorkload } from '../../broker/store/workloads.ts';
import {
  APPROVED,
  BYTES,
  type Case,
  changing,
  DENIED,
  ENDED_BY_OWNER,
  FUTURE,
  NOW,
  OTHER,
  OWN,
  PAST,
  PENDING,
  placeOf,
  type Row,
  TOKENS,
  upstream,
} from './statement-case.ts';

const decision = { at: NOW, by: 'owner', note: null, auditId: 'audit' };
const agentOf = (row: { organisation_id: string; agent_id: string }) => ({
  organisationId: row.organisation_id,
  id: row.agent_id,
});
const UNLESS_PENDING = { ...OWN, expires_at: PAST };
const BREAKER = { organisation_id: OTHER, agent_id: OTHER, cause: 'breaker_api_error', key: OTHER } as const;
const CLAIMED = { claimed_at: PAST, agent_id: 'agent' };
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

export const CHANGING: Case[] = [
  changing('access_requests', 'decide', { given: PENDING, others: { ...UNLESS_PENDING, status: DENIED } }, (db, row) =>
    decideAccessRequest(db, row, { ...decision, status: 'denied', granted: null }),
  ),
  changing('agents', 'move', { given: { status: 'active' }, others: { ...OWN, status: 'suspended' } }, (db, row) =>
    moveAgents(db, placeOf(row), { from: ['active'], to: 'revoked', cause: 'owner_manual', detail: null }, NOW),
  ),
  changing('agents', 'update', { others: OWN }, (db, row) =>
    updateAgent(db, row.organisation_id, row.id, { name: 'new' }),
  ),
  changing('agents', 'hand over', { others: OWN }, (db, row) =>
    updateAgent(db, row.organisation_id, row.id, { owner_id: crypto.randomUUID() }),
  ),
  changing(
    'agents',
    'hand over children',
    { given: { parent_id: 'parent' }, others: { organisation_id: OTHER, parent_id: OTHER } },
    (db, row) => updateAgent(db, row.organisation_id, 'parent', { owner_id: crypto.randomUUID() }),
  ),
  changing('agents', 'bind a key', { given: { status: 'active' }, others: { ...OWN, status: 'revoked' } }, (db, row) =>
    bindKey(db, placeOf(row), { pem: 'pem', fingerprint: 'new' }, NOW),
  ),
  changing(
    'agents',
    'reserve a child slot',
    {
      given: { status: 'active', live_children: 1 },
      others: { ...OWN, status: 'suspended', live_children: 2, expires_at: PAST },
    },
    (db, row) => reserveChildSlot(db, placeOf(row), 2, NOW),
  ),
  changing(
    'agents',
    'free a child slot',
    { given: { live_children: 1 }, others: { ...OWN, live_children: 0 } },
    (db, row) => freeChildSlot(db, placeOf(row)),
  ),
  changing('agents', 'free all child slots', { given: { live_children: 1 }, others: OWN }, (db, row) =>
    freeChildSlots(db, placeOf(row)),
  ),
  changing(
    'agents',
    'expire a child',
    { given: { status: 'active', expires_at: PAST }, others: { ...OWN, status: 'revoked', expires_at: FUTURE } },
    (db, row) => expireChild(db, placeOf(row), NOW),
  ),
  changing(
    'approvals',
    'decide',
    { given: PENDING, others: { ...UNLESS_PENDING, request_hash: OTHER, status: { ...DENIED, decided_how: 'api' } } },
    (db, row) => decideHeldCall(db, row, { ...decision, status: 'denied', how: 'api', with: null, instanceId: 'me' }),
  ),
  changing(
    'approvals',
    'correct',
    { given: PENDING, others: { ...UNLESS_PENDING, request_hash: OTHER, status: { ...DENIED, decided_how: 'api' } } },
    (db, row) =>
      correctHeldCall(db, row, { by: 'owner', at: NOW, request_hash: 'new' } as Parameters<typeof correctHeldCall>[2]),
  ),
  changing(
    'approvals',
    "withdraw an owner's approvals",
    {
      given: { ...PENDING, approvers: 2, approved_before: '[{"decided_by":"owner"}]' },
      others: {
        organisation_id: OTHER,
        expires_at: PAST,
        status: { ...DENIED, decided_how: 'api' },
        approved_before: '[{"decided_by":"another"}]',
      },
    },
    (db, row) => withdrawApprovals(db, { organisation_id: row.organisation_id, id: 'owner' }, NOW),
  ),
  changing(
    'approvals',
    'begin the replay',
    { given: CLAIMED_REPLAY, others: { ...OWN, fence: 2, exec_state: BEGUN_REPLAY } },
    (db, row) => moveReplay(db, row, 'mine', { exec_state: 'intent' }, NOW),
  ),
  changing(
    'approvals',
    'finish the replay',
    { given: BEGUN_REPLAY, others: { ...OWN, fence: 2, replay_audit_id: 'other' } },
    (db, row) => moveReplay(db, row, 'audit', FAILED, NOW),
  ),
  changing(
    'approvals',
    'end the replay',
    {
      given: BEGUN_REPLAY,
      others: { ...OWN, exec_state: { ...CLAIMED_REPLAY, replay_audit_id: null }, replay_audit_id: 'other' },
    },
    (db, row) => endIntendedReplay(db, row, 'audit', FAILED, NOW),
  ),
  changing(
    'approvals',
    'take the claim over',
    { given: CLAIMED_REPLAY, others: { ...OWN, exec_state: BEGUN_REPLAY, fence: 2 } },
    (db, row) => takeClaim(db, row, 'other'),
  ),
  changing('audit_rows', 'delete', { others: OWN }, (db, row) => deleteRowsOf(db, row.organisation_id, [row.id])),
  changing('audit_sinks', 'change', { others: OWN }, (db, row) => changeSink(db, row, { name: 'new' })),
  changing('audit_sinks', 'delete', { others: OWN }, (db, row) => deleteSink(db, row)),
  changing(
    'breakers',
    'claim the trial',
    { given: { open_until: PAST, trial_at: null }, others: { ...BREAKER, open_until: FUTURE, trial_at: NOW } },
    (db, row) => claimTrial(db, row, 500, NOW),
  ),
  changing(
    'breakers',
    'release the trial',
    { given: { trial_at: NOW }, others: { ...BREAKER, trial_at: PAST } },
    (db, row) => releaseTrial(db, row, NOW),
  ),
  changing(
    'breakers',
    'close',
    { given: { open_until: PAST }, others: { ...BREAKER, open_until: FUTURE } },
    (db, row) => closeBreaker(db, row, NOW),
  ),
  changing('connections', 'store a test', { others: OWN }, (db, row) =>
    storeTest(db, row, { at: NOW, revision: 9, ok: false, upstreamStatus: null, detail: 'why' }),
  ),
  changing('connections', 'change', { others: OWN }, (db, row) =>
    changeConnection(db, { organisation_id: row.organisation_id, id: row.id, wait_ms: 9 }),
  ),
  changing(
    'connections',
    'clear the default',
    { given: { is_default: 1 }, others: { organisation_id: OTHER, platform_id: OTHER } },
    (db, row) => clearDefaultConnection(db, row.organisation_id, row.platform_id),
  ),
  changing('connections', 'replace the credential', { others: OWN }, (db, row) =>
    replaceCredential(db, placeOf(row), BYTES, NOW),
  ),
  changing('connections', 'reseal', { others: OWN }, (db, row) => storeResealed(db, placeOf(row), BYTES)),
  changing('connections', 'set the status', { given: { status: 'active' }, others: OWN }, (db, row) =>
    setCredentialStatus(db, { table: 'connections', ...placeOf(row) }, 'reauth_needed'),
  ),
  changing('connections', 'delete', { others: OWN }, (db, row) =>
    deleteConnection(db, row.organisation_id, row.id, NOW),
  ),
  changing(
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
  changing(
    'connections',
    'store a refresh',
    { given: REFRESHING, others: { ...OWN, refresh_claim: 'other' } },
    (db, row) =>
      storeRefreshed(db, { table: 'connections', ...placeOf(row) }, 'claim', { ...TOKENS, status: 'active' }),
  ),
  changing(
    'connections',
    'release a refresh',
    { given: REFRESHING, others: { ...OWN, refresh_claim: 'other' } },
    (db, row) => releaseRefresh(db, { table: 'connections', ...placeOf(row) }, 'claim', { until: FUTURE }),
  ),
  changing('grants', 'delete', { others: OWN }, (db, row) => deleteGrant(db, row.organisation_id, row.id, NOW)),
  changing(
    'held_joins',
    'open',
    {
      given: { open_until: PAST },
      others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER, open_until: FUTURE },
    },
    (db, row) => openHeldJoin(db, row, NOW),
  ),
  changing(
    'held_joins',
    'close',
    {
      given: { open_until: PAST },
      others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER, open_until: FUTURE },
    },
    (db, row) => closeHeldJoin(db, row, NOW),
  ),
  changing(
    'held_joins',
    'record the answer',
    {
      given: { told_at: null },
      others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER, told_at: PAST },
    },
    (db, row) => recordHeldJoinAnswer(db, row, NOW),
  ),
  changing(
    'held_joins',
    'end',
    { others: { organisation_id: OTHER, agent_id: OTHER, approval_id: OTHER } },
    (db, row) => endHeldJoin(db, row),
  ),
  changing(
    'idempotency_keys',
    'store the answer',
    { others: { organisation_id: OTHER, agent_id: OTHER, key_hash: OTHER, audit_id: OTHER } },
    (db, row) => putIdempotentAnswer(db, row, { status: 299, sealed: null }),
  ),
  changing(
    'idempotency_keys',
    'release',
    { others: { organisation_id: OTHER, agent_id: OTHER, key_hash: OTHER, audit_id: OTHER } },
    (db, row) => releaseIdempotencyKey(db, row),
  ),
  changing(
    'invites',
    'claim',
    { given: { claimed_at: null, expires_at: FUTURE }, others: { ...OWN, claimed_at: CLAIMED, expires_at: PAST } },
    (db, row) => claimInvite(db, row, 'agent', NOW),
  ),
  changing('invites', 'remove', { given: { claimed_at: null }, others: { ...OWN, claimed_at: CLAIMED } }, (db, row) =>
    removeInvite(db, row.organisation_id, row.id),
  ),
  changing(
    'invites',
    'end with the rights of an owner',
    { given: { claimed_at: null }, others: { organisation_id: OTHER, owner_id: OTHER, claimed_at: CLAIMED } },
    (db, row) => endMadeBy(db, { organisation_id: row.organisation_id, id: row.owner_id }),
  ),
  changing('invites', 'delete with an owner', { others: { organisation_id: OTHER, owner_id: OTHER } }, (db, row) =>
    deleteOwner(db, row.organisation_id, row.owner_id, NOW),
  ),
  changing(
    'mcp_authorisations',
    'end',
    { given: { ended_at: null }, others: { id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endMcpAuthorisation(db, row.id, 'owner', NOW),
  ),
  changing(
    'mcp_authorisations',
    'end with an agent',
    { given: { ended_at: null }, others: { organisation_id: OTHER, agent_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endMcpAuthorisationsOf(db, agentOf(row), NOW),
  ),
  changing(
    'mcp_authorisations',
    'transfer to another owner',
    { others: { organisation_id: OTHER, owner_id: OTHER } },
    (db, row) => transferToOwner(db, { organisationId: row.organisation_id, from: row.owner_id, to: 'new' }),
  ),
  changing(
    'mcp_repeats',
    'hold',
    { others: { organisation_id: OTHER, agent_id: OTHER, hash: OTHER, key: OTHER } },
    (db, { organisation_id, agent_id, hash, key }) =>
      holdMcpRepeat(db, { organisation_id, agent_id, hash, key }, { approval_id: 'new', expires_at: FUTURE }),
  ),
  changing(
    'mcp_repeats',
    'end',
    { others: { organisation_id: OTHER, agent_id: OTHER, hash: OTHER, key: OTHER } },
    (db, { organisation_id, agent_id, hash, key }) => endMcpRepeat(db, { organisation_id, agent_id, hash, key }),
  ),
  changing('notice_channels', 'change', { others: OWN }, (db, row) =>
    changeChannel(db, row, { last_error: 'why' } as never, 1),
  ),
  changing('notice_channels', 'delete', { others: OWN }, (db, row) => deleteChannel(db, row)),
  changing('notice_channels', 'delete by name', { others: { organisation_id: OTHER, name: OTHER } }, (db, row) =>
    deleteChannelNamed(db, row.organisation_id, row.name),
  ),
  changing(
    'notice_channels',
    'delete with an owner',
    { given: { owner_id: 'owner' }, others: { organisation_id: OTHER, owner_id: OTHER } },
    (db, row) => deleteChannelsOfOwner(db, { organisation_id: row.organisation_id, id: 'owner' }),
  ),
  changing(
    'notice_channels',
    'note a failure',
    { given: { owner_id: null, status: 'active' }, others: { ...OWN, status: 'gone' } },
    (db, row) => noteFailing(db, row, 'failing', 'why'),
  ),
  changing(
    'notice_channels',
    'delete the device that is gone',
    { given: { owner_id: 'owner' }, others: OWN },
    (db, row) => noteFailing(db, row, 'gone', 'why'),
  ),
  changing(
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
  changing('notice_deliveries', 'mark', { others: OWN }, (db, row) => markDelivery(db, row, { attempts: 9 })),
  changing(
    'one_time_tokens',
    'use',
    { given: UNUSED, others: { token_hash: OTHER, kind: 'bootstrap', used_at: PAST, expires_at: PAST } },
    (db, row) => useOneTimeToken(db, row.kind, row.token_hash, NOW),
  ),
  changing(
    'one_time_tokens',
    'end',
    { given: { used_at: null }, others: { organisation_id: OTHER, kind: 'bootstrap', subject: OTHER, used_at: PAST } },
    (db, row) =>
      endOneTimeTokens(db, { organisationId: row.organisation_id, kind: row.kind, subject: row.subject }, NOW),
  ),
  changing(
    'one_time_tokens',
    'end with the rights of an owner',
    { given: { used_at: null, made_by: 'owner' }, others: { organisation_id: OTHER, made_by: OTHER, used_at: PAST } },
    (db, row) => endMadeBy(db, { organisation_id: row.organisation_id, id: 'owner' }),
  ),
  changing(
    'owners',
    'note the sign-in',
    { given: { oidc_subject: 'ours' }, others: { ...OWN, oidc_subject: 'other' } },
    (db, row) => noteSignIn(db, row, NOW),
  ),
  changing(
    'owners',
    'link an identity',
    { given: { oidc_subject: null }, others: { ...OWN, oidc_subject: 'other' } },
    (db, row) => pinIdentity(db, row, 'new'),
  ),
  changing('owners', 'unlink an identity', { given: { oidc_subject: 'subject' }, others: OWN }, (db, row) =>
    forgetIdentity(db, row, NOW),
  ),
  changing('owners', 'delete', { others: OWN }, (db, row) => deleteOwner(db, row.organisation_id, row.id, NOW)),
  changing(
    'passkeys',
    'use',
    { given: { status: 'active', counter: 1 }, others: { ...OWN, status: 'disabled', counter: 2 } },
    (db, row) => usePasskey(db, row, { counter: 2, at: NOW, may: 'sign_in' }),
  ),
  changing(
    'passkeys',
    'disable',
    { given: { status: 'active', counter: 2 }, others: { ...OWN, status: 'removed', counter: 1 } },
    (db, row) => disableRegressed(db, row, 2),
  ),
  changing('passkeys', 'clear the mark', { given: { restored_counter: 1 }, others: { ...OWN } }, (db, row) =>
    clearRestoredCounter(db, row),
  ),
  changing(
    'passkeys',
    'rename',
    { given: { status: 'active' }, others: { ...OWN, owner_id: OTHER, status: 'removed' } },
    (db, row) => renamePasskey(db, { organisationId: row.organisation_id, ownerId: row.owner_id }, row.id, 'new'),
  ),
  changing(
    'passkeys',
    'remove',
    { given: { status: 'active' }, others: { ...OWN, owner_id: OTHER, status: 'removed' } },
    (db, row) => removePasskey(db, { organisationId: row.organisation_id, ownerId: row.owner_id }, row.id),
  ),
  changing(
    'passkeys',
    'remove a disabled one',
    { given: { status: 'disabled' }, others: { ...OWN, owner_id: OTHER } },
    (db, row) => removePasskey(db, { organisationId: row.organisation_id, ownerId: row.owner_id }, row.id),
  ),
  changing('passkeys', 'delete with an owner', { others: { organisation_id: OTHER, owner_id: OTHER } }, (db, row) =>
    deleteOwner(db, row.organisation_id, row.owner_id, NOW),
  ),
  changing(
    'person_consents',
    'begin',
    { given: PENDING, others: { id: OTHER, status: 'completed', expires_at: PAST } },
    (db, row) =>
      putConsentFlow(db, row.id, { browserHash: 'browser', stateHash: 'state', flow: BYTES, now: NOW, goesOn: false }),
  ),
  changing(
    'person_consents',
    'complete',
    { given: PENDING, others: { id: OTHER, status: 'completed', expires_at: PAST } },
    (db, row) => completeConsent(db, row.id, NOW),
  ),
  changing(
    'person_tokens',
    'move',
    { given: { standing: 'unconfirmed' }, others: { ...OWN, standing: 'obtained' } },
    (db, row) => movePersonTokens(db, placeOf(row), 'unconfirmed', 'active' as never),
  ),
  changing('person_tokens', 'delete', { others: OWN }, (db, row) =>
    deletePersonTokens(db, row.organisation_id, [row.id]),
  ),
  changing(
    'person_tokens',
    'delete obtained ones',
    { given: { standing: 'obtained' }, others: { organisation_id: OTHER, consent_id: OTHER, standing: 'unconfirmed' } },
    (db, row) => deleteObtainedTokens(db, row.organisation_id, row.consent_id),
  ),
  changing(
    'person_tokens',
    'delete with a connection',
    { others: { organisation_id: OTHER, connection_id: OTHER } },
    (db, row) => deleteTokensOfPeople(db, row.organisation_id, row.connection_id),
  ),
  changing('pipelines', 'note the use', { others: OWN }, (db, row) => notePipelineUse(db, row, NOW)),
  changing('pipelines', 'delete', { others: OWN }, (db, row) => deletePipeline(db, row)),
  changing(
    'platform_secrets',
    'delete',
    { others: { organisation_id: OTHER, platform_id: OTHER, name: OTHER } },
    (db, row) =>
      deleteNamedPlatformSecret(db, {
        organisationId: row.organisation_id,
        platformId: row.platform_id,
        name: row.name,
      }),
  ),
  changing(
    'platform_secrets',
    'delete with a platform',
    { others: { organisation_id: OTHER, platform_id: OTHER } },
    (db, row) => deletePlatform(db, row.organisation_id, row.platform_id),
  ),
  changing(
    'platforms',
    'suspend',
    { given: { suspended: 0 }, others: { organisation_id: OTHER, platform_id: OTHER } },
    (db, row) =>
      switchPlatform(db, { organisationId: row.organisation_id, platformId: row.platform_id }, { suspended: true }),
  ),
  changing('platforms', 'delete', { others: { organisation_id: OTHER, platform_id: OTHER } }, (db, row) =>
    deletePlatform(db, row.organisation_id, row.platform_id),
  ),
  changing('policies', 'delete', { others: OWN }, (db, row) => deletePolicy(db, row.organisation_id, row.id)),
  changing(
    'receipt_logs',
    'move the head',
    { given: { size: 1 }, others: { organisation_id: OTHER, size: 5 } },
    (db, row) => moveHead(db, { ...row, size: 2, root: 'new', from: 1 }),
  ),
  changing('log_checkpoints', 'add a cosignature', { others: { organisation_id: OTHER, size: 1 } }, (db, row) =>
    addCosignature(db, row, 'line'),
  ),
  changing('refusal_counts', 'forget', { others: { organisation_id: OTHER, agent_id: OTHER } }, (db, row) =>
    forgetRefusals(db, row.organisation_id, row.agent_id),
  ),
  changing('registrations', 'decide', { given: PENDING, others: { ...UNLESS_PENDING, status: APPROVED } }, (db, row) =>
    decideRegistration(
      db,
      { organisation_id: row.organisation_id ?? '', id: row.id },
      { ...decision, status: 'rejected', granted: null, private_key: null, claim_until: null },
    ),
  ),
  changing(
    'registrations',
    'take the private key',
    { given: APPROVED, others: { ...OWN, private_key: { private_key: null, claimed_at: PAST }, claim_until: PAST } },
    (db, row) => takePrivateKey(db, { organisation_id: row.organisation_id ?? '', id: row.id }, NOW),
  ),
  changing(
    'registrations',
    'delete with an owner',
    { given: { owner_id: 'owner' }, others: { organisation_id: OTHER, owner_id: OTHER } },
    (db, row) => deleteOwner(db, row.organisation_id ?? '', 'owner', NOW),
  ),
  changing(
    'secret_authorizations',
    'use',
    { given: UNUSED, others: { ...OWN, used_at: { used_at: PAST, connection_id: 'connection' }, expires_at: PAST } },
    (db, row) => useSecretAuthorization(db, row, 'connection', NOW),
  ),
  changing(
    'secret_authorizations',
    'remove',
    { given: { used_at: null }, others: { ...OWN, used_at: { used_at: PAST, connection_id: 'connection' } } },
    (db, row) => removeSecretAuthorization(db, row.organisation_id, row.id),
  ),
  changing(
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
  changing(
    'secret_authorizations',
    'end with the rights of an owner',
    {
      given: { used_at: null },
      others: { organisation_id: OTHER, owner_id: OTHER, used_at: { used_at: PAST, connection_id: 'connection' } },
    },
    (db, row) => endMadeBy(db, { organisation_id: row.organisation_id, id: row.owner_id }),
  ),
  changing(
    'standing_approvals',
    'use',
    {
      given: { expires_at: FUTURE, uses_left: 1 },
      others: { ...OWN, uses_left: 0, expires_at: PAST, ended_at: ENDED_BY_OWNER },
    },
    (db, row) => useStandingApproval(db, row, NOW),
  ),
  changing(
    'standing_approvals',
    'end',
    { given: { expires_at: FUTURE }, others: { ...OWN, expires_at: PAST, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStandingApproval(db, row, 'owner', NOW),
  ),
  changing(
    'standing_approvals',
    'end with an agent',
    { others: { organisation_id: OTHER, agent_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStandingOfAgents(db, row.organisation_id, [row.agent_id], NOW),
  ),
  changing(
    'standing_approvals',
    'end with a grant',
    { others: { organisation_id: OTHER, grant_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStandingOfGrants(db, row.organisation_id, [row.grant_id], NOW),
  ),
  changing(
    'static_keys',
    'end',
    { given: { expires_at: FUTURE }, others: { ...OWN, expires_at: PAST, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStaticKey(db, row, NOW),
  ),
  changing(
    'static_keys',
    'end with an agent',
    { others: { organisation_id: OTHER, agent_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStaticKeysOf(db, agentOf(row), NOW),
  ),
  changing(
    'static_keys',
    'end with a connection',
    { others: { organisation_id: OTHER, connection_id: OTHER, ended_at: ENDED_BY_OWNER } },
    (db, row) => endStaticKeysFor(db, { organisationId: row.organisation_id, id: row.connection_id }, NOW),
  ),
  changing(
    'tools',
    'forget',
    { others: { organisation_id: OTHER, platform_id: OTHER, server: OTHER, name: OTHER } },
    (db, row) =>
      forgetTools(db, { organisationId: row.organisation_id, platformId: row.platform_id, server: row.server }, [
        row.name,
      ]),
  ),
  changing(
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
    changing(
      'upstream_tokens',
      what,
      {
        given: { claim: 'claim' },
        others: { organisation_id: OTHER, connection_id: OTHER, purpose: OTHER, claim: OTHER },
      },
      run,
    ),
  ),
  changing(
    'upstream_tokens',
    'delete with a connection',
    { others: { organisation_id: OTHER, connection_id: OTHER } },
    (db, row) => deleteUpstreamTokens(db, upstream(row)),
  ),
  changing('workloads', 'delete', { others: { organisation_id: OTHER, agent_id: OTHER } }, (db, row) =>
    deleteWorkload(db, row),
  ),
];
