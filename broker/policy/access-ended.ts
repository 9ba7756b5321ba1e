/** Checks whether a call in flight may continue: its agent's status, grant, connection or credentials may have changed since the call was allowed. */
import { effectiveGrant } from './attenuation.ts';
import { withoutBreakers } from './breaker.ts';
import { standingChecks } from './checks.ts';
import type { AgentHalt, Ask, CheckName, DenyReason, Facts, Instant } from './facts.ts';
import { questionOf } from './rules/selection.ts';

/**
 * The platform, scopes and connection for which a call was allowed. `through`: the id of the connection that the call uses, whether the call named a
 * connection or not.
 */
export type Access = Pick<Ask, 'platformId' | 'scope' | 'connectionId'> & {
  through: string;
  /** The further scopes that the call needs. */
  further?: readonly string[];
};

/**
 * A credential that a call was made with, or is sent with, and that can be revoked while its agent keeps the grant: a static key, a workload, the
 * authorisation of an MCP client, the tokens of the person for whom the call is made.
 */
export type LentCredential = { kind: 'static_key' | 'workload' | 'mcp_authorisation' | 'person_tokens'; id: string };
type LentEnded = `${LentCredential['kind'] | 'agent_key'}_ended`;

/** Why a call in flight must stop. `halt`: present when the agent itself is halted. */
export type AccessEnded = {
  reason: DenyReason | 'platform_not_connected' | LentEnded;
  /** One sentence for a person; may change between releases. */
  detail: string;
  halt?: AgentHalt;
};

/** The checks that are repeated for a call in flight. Rules and breakers are not among them: they are evaluated once, when the call begins. */
const REPEATED_CHECKS: ReadonlySet<CheckName> = new Set<CheckName>([
  'status',
  'grant',
  'ttl',
  'child_liveness',
  'scope',
]);
const CHECKS = standingChecks.filter(([name]) => REPEATED_CHECKS.has(name));

/**
 * Returns why the agent could not begin the same call now: it or its parent is suspended, revoked or expired, all agents are stopped, its grant is gone, has
 * expired or lacks one of the scopes, the platform is suspended, or the connection is gone. Undefined: the call continues. Uses the checks of `decide`. Pure; never
 * throws.
 *
 * @param now milliseconds since the epoch
 */
export function accessEnded(given: Facts, access: Access, now: Instant): AccessEnded | undefined {
  const facts = withoutBreakers(given);
  const grant = effectiveGrant(facts, access);
  const { further = [], ...ask } = access;
  for (const scope of [access.scope, ...further]) {
    const matter = { facts, now, question: questionOf(facts, { ...ask, scope }, now), grant };
    for (const [, check] of CHECKS) {
      const finding = check(matter);
      if (finding.kind !== 'deny') continue;
      const { reason, detail, halt } = finding;
      return { reason, detail, ...(halt && { halt }) };
    }
  }
  if ((grant?.connectionId ?? facts.platform?.defaultConnectionId) !== access.through)
    return { reason: 'no_permission_record', detail: 'the grant leads to another connection now' };
  // On a platform with tokens per person, the state of the connection's own credential does not matter.
  if (facts.platform?.perPerson || grant?.connection?.status !== 'not_connected') return undefined;
  return { reason: 'platform_not_connected', detail: 'the connection was disconnected' };
}

/** The sentence of the refusal for each ended credential. */
const LENT_ENDED: Readonly<Record<LentEnded, string>> = {
  agent_key_ended: 'the key that the call was signed with was replaced',
  static_key_ended: 'the static key of the call was revoked or has expired',
  workload_ended: 'tokens of the workload that made the call are no longer accepted',
  mcp_authorisation_ended: 'the access of this MCP client was revoked or has expired',
  person_tokens_ended: 'the person whom the call is for has disconnected',
};

/** For a call that was signed with a key which the agent has since replaced: whoever else held the old key must not read the rest of the answer. */
export const KEY_REPLACED: AccessEnded = { reason: 'agent_key_ended', detail: LENT_ENDED.agent_key_ended };

/** Whether the reason is an ended credential of the call, and not the state of the agent or of its grant. */
export const isLentEnded = (reason: AccessEnded['reason']): reason is LentEnded => reason in LENT_ENDED;

/** Returns why a call must stop when one of the credentials it uses is not among the `live` ids. Undefined: the call continues. */
export function credentialEnded(lent: readonly LentCredential[], live: ReadonlySet<string>): AccessEnded | undefined {
  const ended = lent.find(({ id }) => !live.has(id));
  if (ended === undefined) return undefined;
  const reason: LentEnded = `${ended.kind}_ended`;
  return { reason, detail: LENT_ENDED[reason] };
}
