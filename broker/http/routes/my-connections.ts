/** The pages on which people see and withdraw what they gave. */
import { z } from 'zod';
import { listMine, withdraw } from '../../admin/people/my-connections.ts';
import { beginPersonSignIn, finishPersonSignIn, signInPlaces } from '../../admin/people/person-sign-in.ts';
import { storedUuid } from '../../crypto/ids.ts';
import { leave, type PersonSession, sessionsOf } from '../../people/sessions.ts';
import { Refusal } from '../errors.ts';
import { leftPage, MINE_PATH, minePage, noConsentsPage, whoPage, withdrawnPage } from '../pages/my-pages.ts';
import { leadPage } from '../pages/person-pages.ts';
import { textPage } from '../pages/sign-in-page.ts';
import { answeringPerson, PERSON_ROUTE, type PersonAsks, pageAnswer } from '../person-answer.ts';
import {
  checkOwnForm,
  endedPersonFlow,
  endedSessionCookie,
  newSessionCookie,
  personFlowCookie,
  readPersonFlow,
  sessionHashOf,
} from '../person-browser.ts';
import type { Reply } from '../reply.ts';
import { type Route, route } from '../route.ts';

const sessions = ({ request, services: { broker } }: PersonAsks): Promise<PersonSession[]> =>
  sessionsOf(broker, sessionHashOf(request, broker.baseUrl));

const organisationIn = (query: URLSearchParams): string | undefined => {
  const given = z.guid().safeParse(query.get('organisation'));
  return given.success ? storedUuid(given.data) : undefined;
};

/** GET /me/connections */
const mine = route({
  ...PERSON_ROUTE,
  method: 'GET',
  path: MINE_PATH,
  capability: 'person.connections.list',
  summary: 'The page on which a person sees what they gave. `organisation`: where to sign in for it.',
  answers: pageAnswer('What the person gave, or where to sign in to see it.'),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const { services, query } = context;
      const known = await sessions(context);
      const organisation = organisationIn(query) ?? known[0]?.organisation_id;
      const places = await signInPlaces(services, organisation);
      if (known.length === 0) return whoPage(places);
      const isSignedIn = known.some((one) => one.organisation_id === places?.id && one.consent_id === '');
      return minePage(await listMine(services.broker, known), isSignedIn ? undefined : places);
    }),
});

/** POST /me/connections/sign-in */
const signIn = route({
  ...PERSON_ROUTE,
  method: 'POST',
  path: `${MINE_PATH}/sign-in`,
  capability: 'person.connections.sign_in',
  summary: 'Sends a person to sign in at an `issuer` that an `organisation` trusts.',
  answers: pageAnswer('A page that leads there.'),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const { services, request, query } = context;
      checkOwnForm(request, services.broker.baseUrl);
      const organisation = organisationIn(query);
      if (organisation === undefined) throw new Refusal('invalid_request', 'organisation: is missing.');
      const begun = await beginPersonSignIn(services, { organisation, issuer: query.get('issuer') ?? '' });
      return leadPage(begun.url, [personFlowCookie(services.broker, begun.kept)]);
    }),
});

/** Handles an issuer's answer, if this browser was signing in to see what was given; otherwise undefined. */
export async function finishConnectionsSignIn(
  { services, request, query }: PersonAsks,
  path: string,
): Promise<Reply | undefined> {
  const { broker } = services;
  const flow = readPersonFlow(broker, request, query);
  if (!flow) return undefined;
  const { cookies, ...cookie } = newSessionCookie(request, broker.baseUrl);
  const isKnown = await finishPersonSignIn(services, { path, query }, flow, cookie);
  if (!isKnown) return noConsentsPage([endedPersonFlow(broker)]);
  const link = { to: MINE_PATH, text: 'Go on' };
  return textPage(
    200,
    { title: 'Signed in', text: 'You are signed in.', link, leads: true },
    { 'Set-Cookie': [...cookies, endedPersonFlow(broker)] },
  );
}

/** POST /me/connections/{id}/withdraw */
const withdrawn = route({
  ...PERSON_ROUTE,
  method: 'POST',
  path: `${MINE_PATH}/{id}/withdraw`,
  capability: 'person.connections.withdraw',
  summary: 'Ends what the person gave, and revokes it at the platform where that lets one.',
  params: { id: z.guid().describe('the id of the tokens') },
  answers: pageAnswer('A page that says so.'),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const { services, request, params, correlationId } = context;
      checkOwnForm(request, services.broker.baseUrl);
      const known = await sessions(context);
      if (known.length === 0)
        throw new Refusal('forbidden', `Nobody is known in this browser. Open ${MINE_PATH} first.`);
      const { platform, revoked } = await withdraw(services, known, { id: storedUuid(params.id), correlationId });
      return withdrawnPage(platform, revoked);
    }),
});

/** POST /me/connections/leave */
const left = route({
  ...PERSON_ROUTE,
  method: 'POST',
  path: `${MINE_PATH}/leave`,
  capability: 'person.connections.leave',
  summary: 'This browser no longer shows the accounts of the person.',
  answers: pageAnswer('A page that says so.'),
  handle: async (context) =>
    answeringPerson(context, async () => {
      const {
        request,
        services: { broker },
      } = context;
      checkOwnForm(request, broker.baseUrl);
      const hash = sessionHashOf(request, broker.baseUrl);
      if (hash !== undefined) await leave(broker, hash);
      return leftPage(endedSessionCookie(broker.baseUrl));
    }),
});

export const myConnectionRoutes: readonly Route[] = [mine, signIn, left, withdrawn];
