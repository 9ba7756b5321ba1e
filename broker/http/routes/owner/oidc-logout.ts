/** The identity provider reports that a session there has ended: the sessions here end with it. */
import { endSessionsOf } from '../../../auth/provider-session.ts';
import { Refusal } from '../../errors.ts';
import { bytesOf } from '../../request-pieces.ts';
import { route } from '../../route.ts';

/** Enough for a signed JWT of a few claims. */
const MAX_BYTES = 16 * 1024;

/** POST /console/oidc/logout (OpenID Connect Back-Channel Logout 1.0 section 2.5) */
export const oidcLogout = route({
  method: 'POST',
  path: '/console/oidc/logout',
  auth: 'none',
  limit: { name: 'logout-by-provider', perMinute: 600, per: 'address' },
  capability: 'owner.oidc.logout',
  summary: "Handles the identity provider's logout token (a form), and ends the sessions that it names.",
  answers: { 200: { description: 'They are ended, if there were any.', empty: true } },
  errors: [
    'invalid_request',
    'not_found',
    'payload_too_large',
    'rate_limited',
    'identity_provider_failed',
    'audit_unavailable',
  ],
  handle: async ({ services, request, correlationId }) => {
    const { broker, provider } = services;
    if (!provider) throw new Refusal('not_found', 'Owners sign in by links here: no identity provider is configured.');
    const form = new URLSearchParams((await bytesOf(request, MAX_BYTES)).toString('utf8'));
    const [token, more] = form.getAll('logout_token');
    if (token === undefined || more !== undefined)
      throw new Refusal('invalid_request', 'Send one logout_token, as a form (application/x-www-form-urlencoded).');
    const verified = await provider.verifyLogout(token);
    if (verified.kind === 'unavailable')
      throw new Refusal('identity_provider_failed', `Cannot fetch the signing keys (JWKS) of ${provider.host}.`);
    if (verified.kind === 'refused') throw new Refusal('invalid_request', verified.detail);
    const organisations = await endSessionsOf(services, provider.issuer, verified.claims, correlationId);
    broker.log.info({ provider: provider.host, organisations }, 'the identity provider ended sessions of an owner');
    return { status: 200, headers: { 'Cache-Control': 'no-store' } };
  },
});
