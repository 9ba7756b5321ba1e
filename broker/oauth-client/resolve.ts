/** Completes a manifest's client configuration by discovery and registration (RFC 9728, RFC 8414, RFC 7591). */
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import { ProviderUnreachable, providerFetch } from '../egress/provider-fetch.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import { resourceFinder } from './protected-resource.ts';
import type { Described, Registered } from './registered.ts';
import { findRegistration, type Registration, register } from './registration.ts';
import { mixUpRisk, type ServerFinder } from './server.ts';

/**
 * `client`: the client id to which a code or tokens were issued; undefined: an owner is connecting, so the broker may register
 * itself if it has to.
 */
export type Resolver = (described: Described, client: string | undefined) => Promise<Registered | OAuthProblem>;

/** Makes it. Sends no request where the manifest is complete. */
export function resolver(broker: Pick<Broker, 'store' | 'vault' | 'clock' | 'outbound'>, find: ServerFinder): Resolver {
  const findResource = resourceFinder(broker);
  const fetch = providerFetch(broker.outbound);

  const registrationAt = async (
    described: Described,
    issuer: string,
    client: string | undefined,
  ): Promise<Registration | OAuthProblem> => {
    const { platformId, redirectUri } = described;
    const known = await findRegistration(broker, described, { issuer, redirectUri, client });
    if (known) return known;
    if (client !== undefined)
      return { problem: 'stale', detail: `The broker's client registration for ${platformId} is gone. Connect again.` };
    const metadata = await find({ ...described, issuer });
    if (isProblem(metadata)) return metadata;
    const misled = mixUpRisk(metadata, described);
    if (misled) return misled;
    try {
      return await register(broker, fetch, described, { metadata, redirectUri });
    } catch (error) {
      if (!(error instanceof ProviderUnreachable)) throw error;
      return {
        problem: 'unreachable',
        detail: `The authorization server of ${platformId} could not be reached. Try again shortly.`,
      };
    }
  };

  return async (described, client) => {
    const { clientId, ...rest } = described;
    const { discoverAt } = rest;
    const found = discoverAt === undefined ? undefined : await findResource(discoverAt);
    if (found && isProblem(found)) return found;
    const known = found
      ? {
          ...rest,
          issuer: found.issuer,
          resource: found.resource,
          scopes: rest.scopes.length > 0 ? rest.scopes : found.scopes,
        }
      : rest;
    if (clientId !== undefined) return { ...known, clientId };
    if (known.issuer === undefined)
      return { problem: 'unsuitable', detail: `${rest.platformId} needs a client_id, or an issuer to register at.` };
    const registration = await registrationAt({ ...described, ...known }, known.issuer, client);
    if (isProblem(registration)) return registration;
    const { client_id, client_secret: secret, auth_method: method } = registration;
    return {
      ...known,
      clientId: client_id,
      clientSecret: secret === undefined ? undefined : new Secret(secret),
      serverOptions: { ...known.serverOptions, ...(method !== 'none' && { token_endpoint_auth_method: method }) },
    };
  };
}
