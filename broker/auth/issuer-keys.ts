/** Caches the published keys of issuers that an organisation trusts. */
import type { JSONWebKeySet } from 'jose';
import type { Broker } from '../broker.ts';
import { providerFetch } from '../egress/provider-fetch.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import type { ProviderKeys } from './provider-keys.ts';

type Asking = Pick<Broker, 'clock' | 'log' | 'outbound'>;

/** `issuer`: exactly as in `iss`. `jwks_uri`: URL of its keys; found by discovery when absent. */
export type KeyIssuer = { issuer: string; jwks_uri?: string | undefined };

/** The number of issuers whose keys are cached. */
const CACHE_SIZE = 200;

/** Returns a function that returns the cached keys of an issuer. Loads the libraries with the first issuer; sends no request yet. */
export function issuerKeys(broker: Asking): (issuer: KeyIssuer) => Promise<ProviderKeys> {
  const keys = recentlyUsed<ProviderKeys>(CACHE_SIZE);
  return async ({ issuer, jwks_uri: uri }) => {
    const place = JSON.stringify([issuer, uri ?? null]);
    const found = keys.get(place);
    if (found) return found;
    const [{ providerKeys }, { providerClient }] = await Promise.all([
      import('./provider-keys.ts'),
      import('./provider-client.ts'),
    ]);
    const provider = providerClient(broker, asProvider({ issuer }), broker.outbound);
    // A concurrent request may have created them meanwhile.
    const made =
      keys.get(place) ??
      providerKeys({
        fetchKeys: uri === undefined ? provider.fetchKeys : () => fetchKeysAt(broker, uri),
        onFailure: (error) => void provider.fault(error),
        clock: broker.clock,
      });
    keys.set(place, made);
    return made;
  };
}

/** Returns an issuer as an OpenID Connect provider with the broker as a public client. */
export const asProvider = ({ issuer, client_id: clientId }: { issuer: string; client_id?: string | undefined }) => ({
  issuer,
  clientId: clientId ?? 'none',
  clientSecret: undefined,
  scopes: 'openid',
  trustEmail: false,
  onLoopback: false,
});

async function fetchKeysAt(broker: Asking, uri: string): Promise<JSONWebKeySet> {
  const answer = await providerFetch(broker.outbound)(uri, {
    method: 'GET',
    headers: { accept: 'application/json, application/jwk-set+json' },
  });
  if (answer.status !== 200) throw new Error(`fetching its key set (JWKS) returned status ${answer.status}`);
  return (await answer.json()) as JSONWebKeySet;
}
