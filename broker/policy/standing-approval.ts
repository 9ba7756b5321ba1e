/**
 * Finds the standing approval that covers the holds of a call. It was created from a held call, and covers only the holds of
 * that call; everything that decided that call must be unchanged. Pure.
 */
import type { JsonObject } from '../../json/json-value.ts';
import type { Ask, Facts, Grant, Instant } from './facts.ts';
import { classify } from './operation.ts';
import { isLike } from './repeated-request.ts';
import { sameJson } from './same-json.ts';
import type { Basis, Hold, StandingApproval } from './standing-terms.ts';

/**
 * Returns a held call with everything that decided it; undefined when no standing approval can be created from it: without the request as it is sent, for a
 * child, for a git request, for a call that no operation covers.
 */
export function basisOf(facts: Facts, ask: Ask, grant: Grant | undefined, holds: readonly Hold[]): Basis | undefined {
  const { agent, platform, policy, guardrails } = facts;
  const { call, repeat } = ask;
  if (!call || call.git || !repeat || agent.parent || !platform || !grant || !policy) return undefined;
  const classified = classify(platform.rules, call);
  if (classified.kind !== 'classified') return undefined;
  return {
    ...repeat,
    agentId: agent.id,
    platformId: platform.platformId,
    connectionId: grant.connectionId ?? platform.defaultConnectionId,
    scope: ask.scope,
    operations: classified.operations,
    manifest: platform.version,
    grant: termsOf(grant),
    policy: { id: policy.id, version: policy.version },
    guardrails: guardrails.version,
    holds,
  };
}

/** Returns the terms of a grant, without the connection that is loaded with it. */
const termsOf = ({ id, connectionId, scopes, constraints, requireApproval, expiresAt }: Grant): JsonObject => ({
  id,
  connectionId,
  scopes: [...scopes],
  constraints: constraints as JsonObject,
  requireApproval,
  expiresAt,
});

/** Returns which of the things that decided a call of this agent has changed since, in words; undefined when nothing has. */
export function changedSince({ platform, policy, guardrails, grants }: Facts, basis: Basis): string | undefined {
  if (platform?.version !== basis.manifest) return 'The platform';
  if (policy?.id !== basis.policy.id || policy.version !== basis.policy.version) return 'The policy';
  if (guardrails.version !== basis.guardrails) return 'The guardrails';
  const grant = grants.find(({ id }) => id === basis.grant.id);
  if (!grant || !sameJson(termsOf(grant), basis.grant)) return 'The grant';
  return (grant.connectionId ?? platform.defaultConnectionId) === basis.connectionId ? undefined : 'The connection';
}

/** Returns the first standing approval that covers all holds of this call; undefined when none does. */
export function standsIn(
  approvals: readonly StandingApproval[],
  basis: Basis,
  now: Instant,
): StandingApproval | undefined {
  return approvals.find((approval) => covers(approval, basis, now));
}

/** All members are destructured, so that a member added to `Basis` later is compared, or does not compile. */
function covers({ terms, expiresAt }: StandingApproval, basis: Basis, now: Instant): boolean {
  const { basis: held, free, session } = terms;
  const { written, sessionId, holds, ...rest } = basis;
  const { written: heldWritten, sessionId: heldSession, holds: heldHolds, ...heldRest } = held;
  if (expiresAt <= now) return false;
  if (session && (sessionId === null || sessionId !== heldSession)) return false;
  if (rest.connectionId === null || !sameJson(heldRest as unknown as JsonObject, rest as unknown as JsonObject))
    return false;
  return holds.every((hold) => isCovered(hold, heldHolds)) && isLike(heldWritten, written, free);
}

function isCovered(hold: Hold, held: readonly Hold[]): boolean {
  if (hold.source === 'grant') return held.some(({ source }) => source === 'grant');
  return hold.lasting && held.some((one) => sameJson(one, hold));
}
