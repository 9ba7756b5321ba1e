/** The pages of a person's consent (specification, Per-person consent; `consent_url`). */
import { z } from 'zod';
import { discardByPerson, keep } from '../../admin/people/keep-consent.ts';
import { authorised, consentOfCallback, consentOfState, signedIn } from '../../admin/people/person-callback.ts';
import { givenIn, goOn, isBrowserOf, showConsent } from '../../admin/people/person-consent.ts';
import { type Consent, consentStatusAt, findConsent } from '../../people/consents.ts';
import { OWN_SIGNED_IN_PATH, SIGNED_IN_PATH } from '../../people/sign-in.ts';
import { Refusal } from '../errors.ts';
import { minePathOf } from '../pages/my-pages.ts';
import { backTo, discardedPage, donePage, keepPage, leadPage, offerPage, usedPage } from '../pages/person-pages.ts';
import { answeringPerson, PERSON_ROUTE, type PersonAsks, pageAnswer } from '../person-answer.ts';
import { browserCookie, browserHashOf, checkOwnForm, newSessionCookie } from '../person-browser.ts';
import type { Reply } from '../reply.ts';
import { type Route, route } from '../route.ts';
import { finishConnectionsSignIn } from './my-connections.ts';

const PATH = '/me/consent/{token}';
const pathOf = (token: string): string => `/me/consent/${token}`;

const params = { token: z.string().describe('the consent_token') };
const LINK_OVER = 'This link has expired: it is valid for 30 minutes. Ask for a new one where you got it.';

/** Loads the consent of the page's address, while it can still be completed. */
async function consentOf({ services: { broker }, params: { token = '' } }: PersonAsks): Promise<Consent> {
  const consent = await findConsent(broker, token);
  if (!consent) throw new Refusal('not_found', 'There is no such consent. Ask for a new link where you got this one.');
  if (consentStatusAt(consent, broker.clock()) === 'expired') throw new Refusal('conflict', LINK_OVER);
  return consent;
}

const browserOf = ({ request, services: { broker } }: PersonAsks) => browserHashOf(request, broker.baseUrl);

/** GET /me/consent/{token} */
const offered = route({
  ...PERSON_ROUTE,
  method: 'GET',
  path: PATH,
  capability: 'person.consent.read',
  summary: 'The page on which a person is asked for a consent.',
  params,
  answers: pageAnswer(
    'The request, the question whether to keep the tokens obtained, or the notice that the consent was already given.',
  ),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const consent = await consentOf(context);
      if (consent.status === 'completed')
        return usedPage(
          (await givenIn(context.services.broker, consent))?.standing === 'unconfirmed',
          minePathOf(consent.organisation_id),
        );
      const shown = await showConsent(context.services, consent, browserOf(context));
      const path = pathOf(context.params.token ?? '');
      return shown.obtained ? keepPage(path, shown) : offerPage(path, shown);
    }),
});

/** POST /me/consent/{token}/start */
const started = route({
  ...PERSON_ROUTE,
  method: 'POST',
  path: `${PATH}/start`,
  capability: 'person.consent.start',
  summary: 'Sends the person on, to sign in or to the platform.',
  params,
  answers: pageAnswer('A page that leads there.'),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const { services, request } = context;
      checkOwnForm(request, services.broker.baseUrl);
      const { hash, cookies } = browserCookie(request, services.broker.baseUrl);
      return leadPage(await goOn(services, await consentOf(context), hash), cookies);
    }),
});

const UNKNOWN_CALLBACK =
  'No consent that was started in this browser matches this response. Open the link of the consent again, in one browser and one tab from start to end. If you were connecting a platform in the console, press Connect there again.';

const USED_CALLBACK = 'This response was used already. Open the link of the consent again: it shows how to continue.';

/**
 * Answers a callback that cannot be used: its consent has ended, this browser used it already (the page was reloaded), or another browser or tab
 * continued with the consent. `consent`: the one that its state belongs to, if any.
 */
async function refuseCallback(context: PersonAsks, consent: Consent | undefined): Promise<Reply> {
  const { services } = context;
  const isOver = consent && consentStatusAt(consent, services.broker.clock()) === 'expired';
  const browserHash = browserOf(context);
  const isUsed = consent?.flow === null && browserHash !== undefined && isBrowserOf(consent, browserHash);
  const refusal = isOver
    ? new Refusal('conflict', LINK_OVER)
    : new Refusal('invalid_request', isUsed ? USED_CALLBACK : UNKNOWN_CALLBACK);
  return await answeringPerson(
    context,
    async () => {
      throw refusal;
    },
    isUsed ? await consentPath(services, consent) : undefined,
  );
}

/** Handles answers of issuers of assertions, for a consent and for a person who wants to see what they gave. */
const personSignedIn = (context: PersonAsks, path: string): Promise<Reply> =>
  answeringPerson(context, async () => {
    const looks = await finishConnectionsSignIn(context, path);
    if (looks) return looks;
    const { services, query } = context;
    const callback = await consentOfCallback(services, query, browserOf(context));
    if (!callback) return await refuseCallback(context, await consentOfState(services, query));
    const back = await consentPath(services, callback.consent);
    return await answeringPerson(
      context,
      async () => leadPage(await signedIn(services, callback, { path, query }), []),
      back,
    );
  });

/** Returns the path of the page of a consent that this browser goes through. */
async function consentPath({ people }: PersonAsks['services'], { organisation_id: organisationId, id }: Consent) {
  return pathOf((await people.hasher.consentToken(organisationId, id)).reveal());
}

const SIGNED_IN = {
  ...PERSON_ROUTE,
  method: 'GET',
  answers: pageAnswer('A page that leads to the platform.'),
} as const;

/** GET /me/consent/signed-in: for issuers that identify themselves in their answers. */
const signedInAgain = route({
  ...SIGNED_IN,
  path: SIGNED_IN_PATH,
  capability: 'person.consent.signed_in',
  summary:
    "Takes the answer of an assertion's issuer: continues to the platform if this is the intended person, or to the person's consents.",
  handle: (context) => personSignedIn(context, SIGNED_IN_PATH),
});

/** GET /me/signed-in/{id}: for one issuer of one organisation. */
const signedInAtOwn = route({
  ...SIGNED_IN,
  path: `${OWN_SIGNED_IN_PATH}/{id}`,
  capability: 'person.consent.own_signed_in',
  summary: "Takes the answer of one issuer of assertions, at that issuer's own redirect URI.",
  params: { id: z.string().describe('of the issuer and the organisation that trusts it') },
  handle: (context) => personSignedIn(context, `${OWN_SIGNED_IN_PATH}/${context.params.id}`),
});

/**
 * Handles the answer of a platform's authorization server, if it belongs to the consent of a person: it arrives at the same address as that of an
 * owner who connects. Undefined when it belongs to no consent, and this browser goes through none.
 */
export async function personComesBack(context: PersonAsks, path: string): Promise<Reply | undefined> {
  const { services, query } = context;
  const callback = await consentOfCallback(services, query, browserOf(context));
  if (!callback) {
    const consent = await consentOfState(services, query);
    if (!consent && browserOf(context) === undefined) return undefined;
    return await refuseCallback(context, consent);
  }
  const page = await consentPath(services, callback.consent);
  const takes = async () => {
    await authorised(services, callback, path, query);
    return backTo(page);
  };
  return await answeringPerson(context, takes, page);
}

/** POST /me/consent/{token}/keep */
const kept = route({
  ...PERSON_ROUTE,
  method: 'POST',
  path: `${PATH}/keep`,
  capability: 'person.consent.keep',
  summary: 'Keeps what the platform gave, and completes the consent.',
  params,
  answers: pageAnswer('A page that says so.'),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const { services, request, correlationId } = context;
      checkOwnForm(request, services.broker.baseUrl);
      const consent = await consentOf(context);
      const { organisation_id: organisationId, id } = consent;
      const browserHash = browserOf(context) ?? '';
      const value = await services.people.hasher.sessionCookie(organisationId, id, browserHash);
      const { cookies, ...cookie } = newSessionCookie(request, services.broker.baseUrl, value.reveal());
      const { confirms, shows } = await keep(services, consent, browserHash, { correlationId, cookie });
      return donePage(confirms, minePathOf(organisationId), shows ? cookies : []);
    }),
});

/** POST /me/consent/{token}/discard */
const discarded = route({
  ...PERSON_ROUTE,
  method: 'POST',
  path: `${PATH}/discard`,
  capability: 'person.consent.discard',
  summary: 'Forgets what the platform gave, and revokes it there.',
  params,
  answers: pageAnswer('A page that says so.'),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const { services, request } = context;
      checkOwnForm(request, services.broker.baseUrl);
      await discardByPerson(services, await consentOf(context), browserOf(context) ?? '');
      return discardedPage(pathOf(context.params.token ?? ''));
    }),
});

/** The order matters: the fixed address comes before the one with a parameter. */
export const personConsentRoutes: readonly Route[] = [signedInAgain, signedInAtOwn, offered, started, kept, discarded];
