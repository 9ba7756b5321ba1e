/**
 * Features that an organisation may start to use: all, unless the operator switched one off. Switching off refuses new use only: existing settings
 * stay in force, and no permission gets wider.
 */
import type { Config } from './environment/config.ts';

export type Entitlement = Config['entitlementsOff'][number]['what'];

/** Whether an organisation may start to use this feature. */
export const isEntitled = (
  { config }: { config: Pick<Config, 'entitlementsOff'> },
  organisationId: string,
  what: Entitlement,
): boolean =>
  !config.entitlementsOff.some((off) => off.what === what && (off.of === undefined || off.of === organisationId));

/** Error texts, by the feature that is switched off. */
export const NOT_ON_PLAN = {
  per_person_tokens:
    'Tokens per person are switched off for this organisation: no new consent is started. The operator of the broker can switch them on (AGENT_BROKER_ENTITLEMENTS_OFF).',
  repository_constraints:
    'Limits to repositories are switched off for this organisation: no grant gets a first one, and the limits of grants that have some stay. Grant without repos and allow_repo_creation, or have the operator of the broker switch them on (AGENT_BROKER_ENTITLEMENTS_OFF).',
} as const;
