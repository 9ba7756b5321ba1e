/** All migrations. */
import type { Kysely } from 'kysely';
import type { Step } from '../readable-by.ts';
import type { Store } from '../store.ts';
import { type ColumnTypes, foundation } from './0001-foundation.ts';
import { approvals } from './0002-approvals.ts';
import { ownersApprove } from './0003-owners-approve.ts';
import { registration } from './0004-registration.ts';
import { children } from './0005-children.ts';
import { oauth } from './0006-oauth.ts';
import { mcpTools } from './0007-tools.ts';
import { mcpClients } from './0008-mcp-clients.ts';
import { halts } from './0009-halts.ts';
import { factVersions } from './0010-fact-versions.ts';
import { rotatingTokens } from './0013-rotating-tokens.ts';
import { storedResponses } from './0015-stored-responses.ts';
import { clientSources } from './0016-client-sources.ts';
import { passkeyChallenges } from './0017-passkey-challenges.ts';
import { governanceVersions } from './0018-governance-versions.ts';
import { derivedReceipts } from './0019-derived-receipts.ts';
import { bulkChanges } from './0020-bulk-changes.ts';
import { upstreamTokens } from './0023-upstream-tokens.ts';
import { people } from './0024-people.ts';
import { personSessions } from './0025-person-sessions.ts';
import { sentences } from './0026-sentences.ts';
import { discoverablePasskeys } from './0027-discoverable-passkeys.ts';
import { connectionTests } from './0028-connection-tests.ts';
import { heldJoins } from './0030-held-joins.ts';
import { staticKeys } from './0032-static-keys.ts';
import { connectionPatience } from './0033-connection-patience.ts';
import { notices } from './0034-notices.ts';
import { standingApprovals } from './0035-standing-approvals.ts';
import { activityCounts } from './0036-activity-counts.ts';
import { agentsAtAGlance } from './0037-agents-at-a-glance.ts';
import { agentDeeds } from './0038-agent-deeds.ts';
import { decideIn } from './0039-decide-in.ts';
import { webPush } from './0040-web-push.ts';
import { receiptLog } from './0041-receipt-log.ts';
import { restoredStores } from './0042-restored-stores.ts';
import { releases } from './0043-releases.ts';
import { auditSinks } from './0045-audit-sinks.ts';
import { rateCounts } from './0046-rate-counts.ts';
import { retention } from './0047-retention.ts';
import { auditPartitions, boundAuditRows } from './0048-audit-partitions.ts';
import { sinksInFiles } from './0049-sinks-in-files.ts';
import { passkeyDeciders } from './0050-passkey-deciders.ts';
import { signIns } from './0051-sign-ins.ts';
import { governanceApplies } from './0052-governance-applies.ts';
import { agentsOwnersAndLabels } from './0053-agents-owners-and-labels.ts';
import { logBatches } from './0054-log-batches.ts';
import { idempotencyInstances } from './0055-idempotency-instances.ts';
import { platformEntries } from './0056-platform-entries.ts';
import { restoredCounters } from './0057-restored-counters.ts';
import { pipelines } from './0058-pipelines.ts';
import { workloads } from './0059-workloads.ts';
import { workloadsInFiles } from './0060-workloads-in-files.ts';
import { rolesByGroups } from './0061-roles-by-groups.ts';
import { limitCounts } from './0062-limit-counts.ts';
import { callMarks } from './0063-call-marks.ts';
import { corrections } from './0064-corrections.ts';
import { correctionRows } from './0065-correction-rows.ts';
import { obtainingBrowsers } from './0066-obtaining-browsers.ts';
import { tokenMakers } from './0067-token-makers.ts';
import { toldJoins } from './0068-told-joins.ts';
import { keyAuthenticators } from './0069-key-authenticators.ts';
import { retentionSeals } from './0070-retention-seals.ts';
import { refreshedTokens } from './0071-refreshed-tokens.ts';
import { formerOwners } from './0072-former-owners.ts';
import { failingTokens } from './0073-failing-tokens.ts';
import { approvers } from './0074-approvers.ts';
import { approversGuard } from './0075-approvers-guard.ts';
import { whileHeld } from './0076-while-held.ts';
import { tokenRevocations } from './0077-token-revocations.ts';
import { listedPersonTokens } from './0078-listed-person-tokens.ts';
import { listedAuthorisations } from './0079-listed-authorisations.ts';

/**
 * Numbered, forward only. A published migration is never edited: a later one fixes it. From 0041 on migrations only add, and name in
 * `readableBy` the oldest release that may run on the store afterwards: the one before the release that ships them.
 */
export const migrations = (types: ColumnTypes, dialect: Store['dialect']): Record<string, Step> => ({
  '0001-foundation': { up: (db: Kysely<unknown>) => foundation(db, types) },
  '0002-approvals': { up: (db: Kysely<unknown>) => approvals(db, types) },
  '0003-owners-approve': { up: (db: Kysely<unknown>) => ownersApprove(db, types) },
  '0004-registration': { up: (db: Kysely<unknown>) => registration(db, types) },
  '0005-children': { up: (db: Kysely<unknown>) => children(db) },
  '0006-oauth': { up: (db: Kysely<unknown>) => oauth(db, types) },
  '0007-tools': { up: mcpTools },
  '0008-mcp-clients': { up: (db: Kysely<unknown>) => mcpClients(db) },
  '0009-halts': { up: (db: Kysely<unknown>) => halts(db, types) },
  '0010-fact-versions': { up: (db: Kysely<unknown>) => factVersions(db, dialect) },
  '0013-rotating-tokens': { up: rotatingTokens },
  '0015-stored-responses': { up: storedResponses },
  '0016-client-sources': { up: clientSources },
  '0017-passkey-challenges': { up: passkeyChallenges },
  '0018-governance-versions': { up: (db: Kysely<unknown>) => governanceVersions(db, dialect) },
  '0019-derived-receipts': { up: derivedReceipts },
  '0020-bulk-changes': { up: (db: Kysely<unknown>) => bulkChanges(db, dialect) },
  '0023-upstream-tokens': { up: (db: Kysely<unknown>) => upstreamTokens(db, types) },
  '0024-people': { up: (db: Kysely<unknown>) => people(db, types) },
  '0025-person-sessions': { up: personSessions },
  '0026-sentences': { up: (db: Kysely<unknown>) => sentences(db, types) },
  '0027-discoverable-passkeys': { up: discoverablePasskeys },
  '0028-connection-tests': { up: connectionTests },
  '0030-held-joins': { up: heldJoins },
  '0032-static-keys': { up: staticKeys },
  '0033-connection-patience': { up: (db: Kysely<unknown>) => connectionPatience(db, dialect) },
  '0034-notices': { up: (db: Kysely<unknown>) => notices(db, types, dialect) },
  '0035-standing-approvals': { up: (db: Kysely<unknown>) => standingApprovals(db, types, dialect) },
  '0036-activity-counts': { up: activityCounts },
  '0037-agents-at-a-glance': { up: (db: Kysely<unknown>) => agentsAtAGlance(db, dialect) },
  '0038-agent-deeds': { up: agentDeeds },
  '0039-decide-in': { up: decideIn },
  '0040-web-push': { up: (db: Kysely<unknown>) => webPush(db, types) },
  '0041-receipt-log': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => receiptLog(db, types, dialect) },
  '0042-restored-stores': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => restoredStores(db, dialect) },
  '0043-releases': { readableBy: '0.1.0', up: releases },
  '0045-audit-sinks': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => auditSinks(db, types) },
  '0046-rate-counts': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => rateCounts(db, dialect) },
  '0047-retention': { readableBy: '0.1.0', up: retention },
  '0048-audit-partitions': {
    readableBy: '0.1.0',
    prepare: boundAuditRows,
    up: (db: Kysely<unknown>) => auditPartitions(db, dialect),
  },
  '0049-sinks-in-files': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => sinksInFiles(db, dialect) },
  '0050-passkey-deciders': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => passkeyDeciders(db, dialect) },
  '0051-sign-ins': { readableBy: '0.1.0', up: signIns },
  '0052-governance-applies': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => governanceApplies(db, types) },
  '0053-agents-owners-and-labels': {
    readableBy: '0.1.0',
    up: (db: Kysely<unknown>) => agentsOwnersAndLabels(db, dialect),
  },
  '0054-log-batches': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => logBatches(db, dialect) },
  '0055-idempotency-instances': { readableBy: '0.1.0', up: idempotencyInstances },
  '0056-platform-entries': { readableBy: '0.1.0', up: platformEntries },
  '0057-restored-counters': { readableBy: '0.1.0', up: restoredCounters },
  '0058-pipelines': { readableBy: '0.1.0', up: pipelines },
  '0059-workloads': { readableBy: '0.1.0', up: workloads },
  '0060-workloads-in-files': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => workloadsInFiles(db, dialect) },
  '0061-roles-by-groups': { readableBy: '0.1.0', up: rolesByGroups },
  '0062-limit-counts': { readableBy: '0.1.0', up: limitCounts },
  '0063-call-marks': { readableBy: '0.1.0', up: callMarks },
  '0064-corrections': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => corrections(db, types) },
  '0065-correction-rows': { readableBy: '0.1.0', up: correctionRows },
  '0066-obtaining-browsers': { readableBy: '0.1.0', up: obtainingBrowsers },
  '0067-token-makers': { readableBy: '0.1.0', up: tokenMakers },
  '0068-told-joins': { readableBy: '0.1.0', up: toldJoins },
  '0069-key-authenticators': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => keyAuthenticators(db, types) },
  '0070-retention-seals': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => retentionSeals(db, types) },
  '0071-refreshed-tokens': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => refreshedTokens(db, dialect) },
  '0072-former-owners': { readableBy: '0.1.0', up: formerOwners },
  '0073-failing-tokens': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => failingTokens(db, dialect) },
  '0074-approvers': { readableBy: '0.1.0', up: approvers },
  '0075-approvers-guard': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => approversGuard(db, dialect) },
  '0076-while-held': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => whileHeld(db, dialect) },
  '0077-token-revocations': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => tokenRevocations(db, types) },
  '0078-listed-person-tokens': { readableBy: '0.1.0', up: listedPersonTokens },
  '0079-listed-authorisations': { readableBy: '0.1.0', up: listedAuthorisations },
});
