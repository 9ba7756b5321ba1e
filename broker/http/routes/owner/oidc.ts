/** Sign-in at the identity provider: redirects there, and handles the callback. */
import { readOrganisation } from '../../../admin/organisations/organisation.ts';
import { AuditUnavailable } from '../../../audit/audit-unavailable.ts';
import type { IdentityProvider } from '../../../auth/identity-provider.ts';
import { invitedOwner } from '../../../auth/invited-owner.ts';
import { beginSession, SESSION_SECONDS, sessionInBrowser } from '../../../auth/owner-session.ts';
import { providerSessionOf } from '../../../auth/provider-session.ts';
import type { NotSignedIn, SignedIn } from '../../../auth/provider-types.ts';
import { authTimeOf } from '../../../auth/recent-sign-in.ts';
import { settleRole } from '../../../auth/roles-by-groups.ts';
import { isSentByOthers, sessionCookie } from '../../../auth/session-cookie.ts';
import { CALLBACK_PATH, endedFlowCookie, flowCookies, ownPage, readFlow } from '../../../auth/sign-in-flow.ts';
import { errorReply } from '../../envelope.ts';
import { asRefusal, type ErrorCode, Refusal } from '../../errors.ts';
import { notSignedInPage, signedInPage } from '../../pages/sign-in-page.ts';
import type { Reply } from '../../reply.ts';
import { type Context, route } from '../../route.ts';

export const START_PATH = '/console/oidc/start';

const limit = { name: 'sign-in-at-provider', perMinute: 60, per: 'address' } as const;

const CODES = {
  stale: 'invalid_request',
  declined: 'forbidden',
  failed: 'identity_provider_failed',
} as const satisfies Record<NotSignedIn['problem'], ErrorCode>;

const refusalOf = ({ problem, detail }: NotSignedIn): Refusal => new Refusal(CODES[problem], detail);

const unrecorded = () =>
  new Refusal('audit_unavailable', 'The sign-in could not be recorded, so you are not signed in. Try again shortly.', {
    headers: { 'Retry-After': '5' },
  });

/** Runs a step of the sign-in. A browser gets a refusal as a page, a program as JSON. `page`: where the sign-in is to lead. */
async function answering(
  context: Context<'none', undefined>,
  { cookies, page }: { cookies: string[]; page: string },
  step: (provider: IdentityProvider) => Promise<Reply>,
): Promise<Reply> {
  try {
    const { provider } = context.services;
    if (!provider) throw new Refusal('not_found', 'Owners sign in by links here: no identity provider is configured.');
    return await step(provider);
  } catch (error) {
    const refusal = error instanceof AuditUnavailable ? unrecorded() : asRefusal(error);
    if (!refusal) throw error;
    if (context.request.headers.accept?.includes('text/html'))
      return notSignedInPage(refusal, context.correlationId, { cookies, page });
    const reply = errorReply(refusal, context);
    return { ...reply, headers: { ...reply.headers, ...(cookies.length > 0 && { 'Set-Cookie': cookies }) } };
  }
}

/** GET /console/oidc/start?organisation=&page=&reauthenticate= */
export const oidcStart = route({
  method: 'GET',
  path: START_PATH,
  auth: 'none',
  limit,
  capability: 'owner.oidc.start',
  summary:
    'Sends a browser to the identity provider. `organisation`: id or name, `page`: where to go afterwards, `reauthenticate=1`: the provider is to ask for the sign-in again, by default for the organisation of the present session.',
  answers: { 302: 'To the provider.' },
  errors: ['not_found', 'rate_limited', 'identity_provider_failed'],
  handle: async (context) => {
    const { services, query, request } = context;
    const page = ownPage(query.get('page'));
    return await answering(context, { cookies: [], page }, async (provider) => {
      // The session to be replaced is read here, because its cookie is not sent with the callback, which comes from another site.
      const replaces = (await sessionInBrowser(services.broker, request)) ?? null;
      const again = query.get('reauthenticate') === '1';
      const asked = query.get('organisation')?.slice(0, 100) || null;
      // An owner who proves their identity again stays in the organisation of the session, and does not get to the oldest one.
      const organisation = asked ?? (again && replaces ? replaces.organisation_id : null);
      const begun = await provider.begin({
        page,
        organisation,
        replaces,
        ...(again && { reauthenticate: true }),
        ...(asked !== null && isSentByOthers(request) && { sentHere: true }),
      });
      if ('problem' in begun) throw refusalOf(begun);
      return {
        status: 302,
        headers: {
          Location: begun.url,
          'Set-Cookie': flowCookies(services.broker, request, begun.flow),
          'Referrer-Policy': 'no-referrer',
        },
      };
    });
  },
});

/** GET /console/oidc/callback: the redirect URI of the provider. */
export const oidcCallback = route({
  method: 'GET',
  path: CALLBACK_PATH,
  auth: 'none',
  limit,
  capability: 'owner.oidc.callback',
  summary: "Handles the identity provider's response, and signs an invited owner in.",
  answers: {
    200: { description: 'A page that leads to the console; the session is set as a cookie.', type: 'text/html' },
  },
  errors: [
    'invalid_request',
    'forbidden',
    'not_found',
    'rate_limited',
    'identity_provider_failed',
    'audit_unavailable',
  ],
  handle: async (context) => {
    const { broker } = context.services;
    const { query } = context;
    const flow = readFlow(broker, context.request, query);
    // A callback that this browser did not start does not end its own sign-in.
    const ended = flow ? [endedFlowCookie(broker, flow)] : [];
    return await answering(context, { cookies: ended, page: flow?.page ?? ownPage(null) }, async (provider) => {
      if (!flow)
        throw new Refusal(
          'invalid_request',
          `No sign-in was started in this browser within the last 10 minutes. Begin at ${broker.baseUrl}/console/sign-in.`,
        );
      const person = await provider.finish(query, flow);
      if ('problem' in person) throw refusalOf(person);
      const { noRoleIn } = await settleRole(context.services, person, context.correlationId);
      const found = await invitedOwner(broker, person.identity, {
        organisation: flow.organisation,
        ...(noRoleIn !== undefined && { leftOut: noRoleIn }),
      });
      if (found.kind === 'not_invited')
        throw noRoleIn === undefined ? notInvited(provider, person, found.elsewhere) : withoutRole(provider, person);
      const session = await beginSession(context.services, found.owner, {
        by: 'provider',
        from: context.source,
        correlationId: context.correlationId,
        replaces: flow.replaces,
        provider: {
          session: providerSessionOf(provider.issuer, person.claims),
          // If the provider was asked to authenticate again but does not report when it did, the sign-in counts as made now: otherwise
          // reauthentication would be impossible with such a provider.
          authTime: authTimeOf(person.claims) ?? (flow.reauthenticate && Math.floor(broker.clock() / 1000)),
        },
      });
      broker.log.info({ owner: found.owner.id, organisation: found.owner.organisation_id }, 'an owner signed in');
      const cookies = [sessionCookie(session.token, SESSION_SECONDS, broker.baseUrl), ...ended];
      if (!flow.sentHere) return signedInPage(flow.page, cookies);
      const { name } = await readOrganisation(broker.store.db, found.owner.organisation_id);
      return signedInPage(flow.page, cookies, { organisation: name, email: found.owner.email });
    });
  },
});

const withoutRole = ({ host }: IdentityProvider, { address }: SignedIn): Refusal =>
  new Refusal(
    'forbidden',
    `${host} signed in ${address ?? 'you'}, and reports no group that still gives a role here. Ask the operator of the provider for such a group, or an admin of your organisation for a role.`,
  );

function notInvited({ host }: IdentityProvider, { identity, address }: SignedIn, elsewhere: boolean): Refusal {
  const refused = (detail: string) => new Refusal('forbidden', `${host} signed in ${address ?? 'you'}${detail}`);
  if (elsewhere) return refused(', who is an owner, but not of that organisation.');
  if (address === undefined)
    return refused(
      ' without naming an e-mail address. Have one entered in your account there; the operator of the provider has to release it to this broker with the scope email.',
    );
  if (identity.email === undefined)
    return refused(
      ', and does not say that the address is verified, so it is not accepted. Have it verified there; if the provider does not verify addresses, the operator of the broker can accept unverified ones (OIDC_TRUST_EMAIL, Operations, Sign-in).',
    );
  return refused(
    `, who is no owner here. Ask an admin of your organisation to add exactly this address on the page Team, or the operator of the broker: npx agent-broker owner add.`,
  );
}
