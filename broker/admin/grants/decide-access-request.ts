/** An owner's decision on an access request: recorded and signed in the transaction that decides it and changes the grant. */

import { statusAt } from '../../audit/approval-state.ts';
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import type { Compiled } from '../../facts/compiled.ts';
import type { FactsLoader } from '../../facts/facts.ts';
import type { Instant, JsonObject } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { decideAccessRequest, findAccessRequest, type ShownRequest } from '../../store/access-requests.ts';
import { putGrant } from '../../store/agents.ts';
import type { FactsReader } from '../../store/facts-reader.ts';
import type { Db } from '../../store/store.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { AccessRequestTable, GrantTable } from '../../store/tables/rules.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import { ChangeRefused } from '../refused.ts';
import { type Remaining, remainingSteps } from './access.ts';
import {
  changedGrant,
  checkTerms,
  describeGrant,
  findGrant,
  findGrantContext,
  type GrantContext,
  type GrantPatch,
} from './grant-terms.ts';
import { noRequest } from './list-access-requests.ts';

/** What an approval grants. `scopes` defaults to the requested one; for the others see `GrantPatch`. */
export type Granting = Pick<GrantPatch, 'connectionId' | 'lastsMs' | 'requireApproval'> & {
  scopes?: readonly string[];
};

/** `note`: a text for the agent. */
export type RequestDecision = { note: string | null } & (
  | { status: 'denied' }
  | { status: 'approved'; granting: Granting }
);

export type RequestDecided =
  | {
      kind: 'decided';
      request: ShownRequest;
      /** Present for an approval. */
      grant?: GrantTable;
      connections: readonly ConnectionTable[];
      remaining: Remaining[];
    }
  | { kind: 'already_decided'; status: AccessRequestTable['status'] }
  | { kind: 'expired' };

/**
 * Decides a request of the owner's organisation. An approval adds the scopes to the grant in the same transaction, so that they apply from the
 * agent's next call. Of concurrent decisions one wins. Throws ChangeRefused when the grant is not possible, or AuditUnavailable: then nothing is
 * decided.
 */
export async function decideRequest(
  services: Changing & { compiled: Compiled; facts: FactsReader; loadFacts: FactsLoader },
  by: ChangingOwner,
  id: string,
  decision: RequestDecision,
): Promise<RequestDecided> {
  const { broker, changes } = services;
  const { db } = broker.store;
  const now = broker.clock();
  const find = () => findAccessRequest(db, by.owner.organisation_id, id);
  const request = await find();
  if (!request) throw noRequest();
  const refused = whyNot(request, now);
  if (refused) return refused;
  const pending = decision.status === 'approved' ? await prepare(services, request, decision.granting) : undefined;
  const ref = { organisation_id: request.organisation_id, id: request.id };
  const grant = await recordInTurn(services, by, changeOf(request, decision), async (tx, note, auditId) => {
    const { status, note: detail } = decision;
    const granted = pending?.scopes ?? null;
    const row = { status, note: detail, at: now, by: by.owner.id, granted, auditId };
    if (!(await decideAccessRequest(tx, ref, row))) return rollback('decided_before');
    note({ access_request: request.id });
    const given = pending && (await putGranted(tx, pending, now, note));
    await changes.announce(tx, ref);
    return given;
  });
  if (grant instanceof RolledBack) {
    const after = await find();
    return (after && whyNot(after, now)) ?? { kind: 'expired' };
  }
  changes.tell(ref);
  const { context, scopes } = pending ?? {};
  const granted = { platformId: request.platform_id, scopes: scopes ?? [], connectionId: grant?.connection_id ?? null };
  const remaining = context ? await remainingSteps(services, context.agent, granted, now) : [];
  const connections = context?.connections ?? [];
  return {
    kind: 'decided',
    request: present(await find(), 'access request'),
    ...(grant && { grant }),
    connections,
    remaining,
  };
}

function whyNot(
  request: ShownRequest,
  now: Instant,
): Extract<RequestDecided, { kind: 'already_decided' | 'expired' }> | undefined {
  const status = statusAt(request, now);
  if (status === 'pending') return undefined;
  return status === 'expired' ? { kind: 'expired' } : { kind: 'already_decided', status };
}

const changeOf = (request: ShownRequest, { status, note }: RequestDecision) => ({
  reason: `access_request_${status}`,
  detail: note,
  agent: { id: request.agent_id, agent_id: request.agent_public_id },
  platform: request.platform_id,
  ...(request.scope !== '' && { scope: request.scope }),
});

type PendingGrant = { context: GrantContext; scopes: readonly string[]; granting: Granting };

/** Checks an approval as far as that is possible without the current grant. */
async function prepare(
  services: Uses<'store'> & { compiled: Compiled },
  request: ShownRequest,
  granting: Granting,
): Promise<PendingGrant> {
  const { platform_id: platformId } = request;
  const scopes = granting.scopes ?? (request.scope === '' ? undefined : [request.scope]);
  if (!scopes)
    throw new ChangeRefused('invalid_request', 'scopes: name the scopes to grant; the agent did not name any.');
  const context = await findGrantContext(services, request.organisation_id, request.agent_id, platformId);
  if (typeof context === 'string')
    throw new ChangeRefused('conflict', 'The agent or the platform no longer exists. Deny the request.');
  checkTerms(context, { scopes: [...scopes] });
  return { context, scopes, granting };
}

/** Existing terms of the grant stay unchanged, unless the approval sets others. */
async function putGranted(
  db: Db,
  pending: PendingGrant,
  now: Instant,
  note: (facts: JsonObject) => void,
): Promise<GrantTable> {
  const { context, scopes, granting } = pending;
  const before = await findGrant(db, context, granting.connectionId);
  const endedAt = before?.expires_at ?? null;
  if (endedAt !== null && endedAt <= now && granting.lastsMs === undefined)
    throw new ChangeRefused(
      'invalid_request',
      `expires_in_seconds: the grant ended on ${new Date(endedAt).toISOString()}. Say how long it lasts from now, or null for no end.`,
    );
  const grant = changedGrant(context, before, { ...granting, scopes: { more: scopes } }, now);
  await putGrant(db, grant);
  note({ granted: [...scopes], before: before ? describeGrant(before) : null, after: describeGrant(grant) });
  return grant;
}
