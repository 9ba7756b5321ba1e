/** Whether an organisation may begin to use tokens per person: on, unless the operator has switched it off. */
import type { Broker } from '../broker.ts';

/** Switched off, only new consents are refused. What people gave stays, and no platform falls back to a shared token. */
export const isEntitled = ({ config }: Pick<Broker, 'config'>, organisationId: string): boolean =>
  !config.entitlementsOff.includes('per_person_tokens') &&
  !config.entitlementsOff.includes(`per_person_tokens@${organisationId}`);

export const NOT_ON_PLAN =
  'Tokens per person are switched off for this organisation: no new consent is begun. Whoever runs the broker can switch them on (AGENT_BROKER_ENTITLEMENTS_OFF).';
