/** Whether a call under way may go on, though it was allowed when it began: what the agent was given may have been taken from it since. */
import { effectiveGrant } from './attenuation.ts';
import { withoutBreakers } from './breaker.ts';
import type { AgentHalt, Ask, CheckName, DenyReason, Facts, Instant } from './facts.ts';
import { questionOf } from './rule-selection.ts';
import { standingChecks } from './standing-checks.ts';

/** What a call was asked and allowed for. `through`: the id of the connection that it goes through, whether it named one or not. */
export type Access = Pick<Ask, 'platformId' | 'scope' | 'connectionId'> & { through: string };

/**
 * What a call came with or goes out with that can be taken away while its agent keeps the grant: a static key, a workload, the authorisation of an MCP client,
 * the tokens of the person whom it is for.
 */
export type LentCredential = { kind: 'static_key' | 'workload' | 'mcp_authorisation' | 'person_tokens'; id: string };
type LentEnded = `${LentCredential['kind'] | 'agent_key'}_ended`;

/** Why a call may not go on. `halt`: present when the agent itself is halted. */
export type AccessEnded = {
  reason: DenyReason | 'platform_not_connected' | LentEnded;
  /** One sentence for a person; may change between releases. */
  detail: string;
  halt?: AgentHalt;
};

/** Neither rules nor breakers: by those a call was judged when it began. */
const LOOKED_AT: ReadonlySet<CheckName> = new Set<CheckName>(['status', 'grant', 'ttl', 'child_liveness', 'scope']);
const CHECKS = standingChecks.filter(([name]) => LOOKED_AT.has(name));

/**
 * Why the agent could not begin such a call now: it or its parent is suspended, revoked or expired, all agents are stopped, its grant is
 * gone, has expired or leaves the scope out, the platform is suspended, or the connection is gone. Undefined: it goes on. The checks are
 * those of `decide`. Pure; never throws.
 *
 * @param now milliseconds since the epoch
 */
export function accessEnded(given: Facts, access: Access, now: Instant): AccessEnded | undefined {
  const facts = withoutBreakers(given);
  const grant = effectiveGrant(facts, access);
  const matter = { facts, now, question: questionOf(facts, access, now), grant };
  for (const [, check] of CHECKS) {
    const finding = check(matter);
    if (finding.kind !== 'deny') continue;
    const { reason, detail, halt } = finding;
    return { reason, detail, ...(halt && { halt }) };
  }
  if ((grant?.connectionId ?? facts.platform?.defaultConnectionId) !== access.through)
    return { reason: 'no_permission_record', detail: 'the grant leads to another connection now' };
  // People bring their own tokens to such a platform.
  if (facts.platform?.perPerson || grant?.connection?.status !== 'not_connected') return undefined;
  return { reason: 'platform_not_connected', detail: 'the connection was disconnected' };
}

/** What a person is told of each. */
const LENT_ENDED: Readonly<Record<LentEnded, string>> = {
  agent_key_ended: 'the key that the call was signed with was replaced',
  static_key_ended: 'the static key of the call was revoked or has expired',
  workload_ended: 'the tokens of the workload that made the call are taken no more',
  mcp_authorisation_ended: 'the access of this MCP client was revoked or has expired',
  person_tokens_ended: 'the person whom the call is for has disconnected',
};

/** Of a call that was signed with a key which the agent has no more: whoever else had it reads no further. */
export const KEY_REPLACED: AccessEnded = { reason: 'agent_key_ended', detail: LENT_ENDED.agent_key_ended };

/** Whether nothing of the agent ended, but what the call came with or was lent. */
export const isLentEnded = (reason: AccessEnded['reason']): reason is LentEnded => reason in LENT_ENDED;

/** Why a call may not go on of whose credentials one is not among those that are `live`, by id. Undefined: it goes on. */
export function credentialEnded(lent: readonly LentCredential[], live: ReadonlySet<string>): AccessEnded | undefined {
  const ended = lent.find(({ id }) => !live.has(id));
  if (ended === undefined) return undefined;
  const reason: LentEnded = `${ended.kind}_ended`;
  return { reason, detail: LENT_ENDED[reason] };
}
