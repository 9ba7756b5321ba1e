/** Sign-in of owners at an OpenID Connect provider (specification, Authentication 5). */
import type { Broker } from '../broker.ts';
import type { RolesByGroups } from '../environment/oidc.ts';
import type { EmailRule } from './provider-identity.ts';
import type { ProviderSteps } from './provider-types.ts';

export type IdentityProvider = ProviderSteps &
  EmailRule & {
    /** Host of the issuer, for display. */
    host: string;
    groups: RolesByGroups | undefined;
  };

/**
 * Returns the provider; undefined when none is configured. Sends no request yet, so that the provider may be down, and loads the
 * libraries lazily, because a broker whose owners sign in by links should not pay for them.
 */
export function makeIdentityProvider(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'log' | 'providerOutbound'>,
): IdentityProvider | undefined {
  const { oidc } = broker.config;
  const outbound = broker.providerOutbound;
  if (!oidc || !outbound) return undefined;
  let loaded: Promise<ProviderSteps> | undefined;
  const load = () => {
    loaded ??= import('./provider-steps.ts').then(({ providerSteps }) => providerSteps(broker, oidc, outbound));
    return loaded;
  };
  return {
    issuer: oidc.issuer,
    trustEmail: oidc.trustEmail,
    host: new URL(oidc.issuer).host,
    groups: oidc.groups,
    begin: async (wish) => (await load()).begin(wish),
    finish: async (query, flow) => (await load()).finish(query, flow),
    verifyBearer: async (token) => (await load()).verifyBearer(token),
    verifyLogout: async (token) => (await load()).verifyLogout(token),
  };
}
