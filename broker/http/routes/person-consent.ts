/** The pages of a person's consent (specification, Per-person consent; `consent_url`). */
import { z } from 'zod';
import { discardByPerson, keep } from '../../admin/keep-consent.ts';
import { authorised, consentOfCallback, goOn, showConsent, signedIn } from '../../admin/person-consent.ts';
import { type Consent, consentStatusAt, findConsent } from '../../people/consents.ts';
import { SIGNED_IN_PATH } from '../../people/sign-in.ts';
import { errorReply } from '../envelope.ts';
import { asRefusal, Refusal } from '../errors.ts';
import { browserCookie, browserHashOf, checkOwnForm } from '../person-browser.ts';
import { backTo, discardedPage, donePage, keepPage, leadPage, noConsentPage, offerPage } from '../person-pages.ts';
import type { Reply } from '../reply.ts';
import { type Context, type Route, route } from '../route.ts';

const PATH = '/me/consent/{token}';
const pathOf = (token: string): string => `/me/consent/${token}`;

const common = {
  auth: 'none',
  limit: { name: 'person-consents', perMinute: 60, per: 'address' },
  errors: [
    'invalid_request',
    'forbidden',
    'not_found',
    'conflict',
    'rate_limited',
    'upstream_unreachable',
    'audit_unavailable',
  ],
} as const;
const params = { token: z.string().describe('the consent_token') };
const page = (description: string) => ({ 200: { description, type: 'text/html' } });

type Asked = Context<'none', undefined>;

/** Tells a person in a browser why something cannot go on; a program gets the envelope. */
async function answering(context: Asked, step: () => Promise<Reply>): Promise<Reply> {
  try {
    return await step();
  } catch (error) {
    const refusal = asRefusal(error);
    if (!refusal) throw error;
    if (context.request.headers.accept?.includes('text/html')) return noConsentPage(refusal, context.correlationId);
    return errorReply(refusal, context);
  }
}

/** The consent of the page's address, as long as something can become of it. */
async function consentOf({ services: { broker }, params: { token = '' } }: Asked): Promise<Consent> {
  const consent = await findConsent(broker, token);
  if (!consent) throw new Refusal('not_found', 'There is no such consent. Ask for a new link where you got this one.');
  if (consentStatusAt(consent, broker.clock()) === 'expired')
    throw new Refusal('conflict', 'This link is over: it is good for 30 minutes. Ask for a new one where you got it.');
  return consent;
}

const browserOf = ({ request, services: { broker } }: Asked) => browserHashOf(request, broker.baseUrl);

/** GET /me/consent/{token} */
const offered = route({
  ...common,
  method: 'GET',
  path: PATH,
  capability: 'person.consent.read',
  summary: 'The page on which a person is asked for a consent.',
  params,
  answers: page('What is asked, or whether what was obtained is to be kept.'),
  handle: async (context) =>
    answering(context, async () => {
      const consent = await consentOf(context);
      if (consent.status === 'completed') return donePage(false);
      const shown = await showConsent(context.services, consent, browserOf(context));
      const path = pathOf(context.params.token ?? '');
      return shown.obtained ? keepPage(path, shown) : offerPage(path, shown);
    }),
});

/** POST /me/consent/{token}/start */
const started = route({
  ...common,
  method: 'POST',
  path: `${PATH}/start`,
  capability: 'person.consent.start',
  summary: 'Sends the person on, to sign in or to the platform.',
  params,
  answers: page('A page that leads there.'),
  handle: async (context) =>
    answering(context, async () => {
      const { services, request } = context;
      checkOwnForm(request, services.broker.baseUrl);
      const { hash, cookies } = browserCookie(request, services.broker.baseUrl);
      return leadPage(await goOn(services, await consentOf(context), hash), cookies);
    }),
});

const BELONGS_NOWHERE =
  'This browser began no consent that waits for this answer. Open the link of the consent again, in one browser from start to end.';

/** GET /me/consent/signed-in: where issuers of assertions send the browser back to. */
const signedInAgain = route({
  ...common,
  method: 'GET',
  path: SIGNED_IN_PATH,
  capability: 'person.consent.signed_in',
  summary: "Takes the answer of an assertion's issuer, and goes on to the platform if it is the person who is meant.",
  answers: page('A page that leads to the platform.'),
  handle: async (context) =>
    answering(context, async () => {
      const { services, query } = context;
      const callback = await consentOfCallback(services, query, browserOf(context));
      if (!callback) throw new Refusal('invalid_request', BELONGS_NOWHERE);
      return leadPage(await signedIn(services, callback, query), []);
    }),
});

/**
 * Takes the answer of a platform's authorization server, if it belongs to the consent of a person: it comes to the same address as
 * that of an owner who connects. Undefined: it belongs to none in this browser.
 */
export async function personComesBack(context: Asked, path: string): Promise<Reply | undefined> {
  const { services, query } = context;
  const callback = await consentOfCallback(services, query, browserOf(context));
  if (!callback) return undefined;
  return await answering(context, async () => {
    await authorised(services, callback, path, query);
    const { organisation_id: organisationId, id } = callback.consent;
    const token = await services.people.hasher.consentToken(organisationId, id);
    return backTo(pathOf(token.reveal()));
  });
}

/** POST /me/consent/{token}/keep */
const kept = route({
  ...common,
  method: 'POST',
  path: `${PATH}/keep`,
  capability: 'person.consent.keep',
  summary: 'Keeps what the platform gave, and completes the consent.',
  params,
  answers: page('A page that says so.'),
  handle: async (context) =>
    answering(context, async () => {
      const { services, request, correlationId } = context;
      checkOwnForm(request, services.broker.baseUrl);
      const consent = await consentOf(context);
      const { confirms } = await keep(services, consent, browserOf(context) ?? '', correlationId);
      return donePage(confirms);
    }),
});

/** POST /me/consent/{token}/discard */
const discarded = route({
  ...common,
  method: 'POST',
  path: `${PATH}/discard`,
  capability: 'person.consent.discard',
  summary: 'Forgets what the platform gave, and revokes it there.',
  params,
  answers: page('A page that says so.'),
  handle: async (context) =>
    answering(context, async () => {
      const { services, request } = context;
      checkOwnForm(request, services.broker.baseUrl);
      await discardByPerson(services, await consentOf(context), browserOf(context) ?? '');
      return discardedPage();
    }),
});

/** In this order: the fixed address before the one with a parameter. */
export const personConsentRoutes: readonly Route[] = [signedInAgain, offered, started, kept, discarded];
