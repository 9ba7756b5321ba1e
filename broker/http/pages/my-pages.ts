/** The pages on which people see and withdraw what they gave. No script: times are in UTC. */
import type { Given, Withdrawn } from '../../admin/people/my-connections.ts';
import type { SignInPlaces } from '../../admin/people/person-sign-in.ts';
import type { Instant } from '../../policy/facts.ts';
import { FORM_PAGE_HEADERS, formButton, type Html, html, linkButton, paragraph, statusLine } from '../../small-page.ts';
import type { Reply } from '../reply.ts';
import { pageOf } from './sign-in-page.ts';

export const MINE_PATH = '/me/connections';

/** Returns the path of an organisation's page, for people who are not signed in yet. */
export const minePathOf = (organisationId: string): string => `${MINE_PATH}?organisation=${organisationId}`;

type Headers = Record<string, string | string[]>;

const page = (title: string, parts: readonly Html[], headers: Headers = {}): Reply =>
  pageOf(200, { title, parts }, { ...FORM_PAGE_HEADERS, 'Cache-Control': 'no-store', ...headers });

const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const time = (at: Instant): Html => html`<time datetime="${new Date(at).toISOString()}">${DATE.format(at)} UTC</time>`;

const fact = (name: string, value: string | Html): Html => html`<dt>${name}</dt><dd>${value}</dd>`;

const STATES: Record<Given['state'], string> = {
  active: 'In use',
  unconfirmed: 'An owner of the organisation has to confirm it first',
  reauth_needed: 'The platform no longer accepts it',
};

function section({ id, platform, account, organisation, state, rights, agents, givenAt, lastUsedAt }: Given): Html {
  const names = agents.map(
    ({ name, scopes }) => html`<li>${name} <span class="quiet">${scopes.join(', ')}</span></li>`,
  );
  return html`<section class="given" aria-labelledby="of-${id}">
  <h2 id="of-${id}">${platform}</h2>
  <dl class="facts">
    ${account === null ? [] : fact('Account', account)}
    ${fact('Given to', organisation)}
    ${fact('State', STATES[state])}
    ${fact('Rights', rights === null ? `as ${platform} showed them` : rights.join(', ') || 'none')}
    ${fact('Agents', names.length === 0 ? 'none just now' : html`<ul>${names}</ul>`)}
    ${fact('Given', time(givenAt))}
    ${fact('Last used', lastUsedAt === null ? 'never' : time(lastUsedAt))}
  </dl>
  ${formButton({ action: `${MINE_PATH}/${id}/withdraw`, text: `Withdraw ${platform}` })}
</section>`;
}

const hostOf = (issuer: string): string => new URL(issuer).host;

const signInButtons = ({ id, issuers }: SignInPlaces): Html[] =>
  issuers.map((issuer) =>
    formButton({
      action: `${MINE_PATH}/sign-in?${new URLSearchParams({ organisation: id, issuer })}`,
      text: `Sign in at ${hostOf(issuer)}`,
    }),
  );

/** Lists what a person gave. `places`: where to sign in to see more; undefined: nowhere. */
export const minePage = (given: readonly Given[], places: SignInPlaces | undefined): Reply =>
  page('What you gave', [
    given.length === 0
      ? paragraph('Agents have no access to any of your accounts here.')
      : paragraph('Agents use these accounts of yours, when they act for you. You can withdraw each immediately.'),
    ...given.map(section),
    ...(places && places.issuers.length > 0
      ? [paragraph(`This is what was given in this browser. Sign in to see all that ${places.name} has.`)]
      : []),
    ...(places ? signInButtons(places) : []),
    formButton({ action: `${MINE_PATH}/leave`, text: 'Leave this page' }),
  ]);

/** Shown to somebody whom this browser's cookies do not identify. */
export const whoPage = (places: SignInPlaces | undefined): Reply =>
  page('What you gave', [
    paragraph('Here you see which accounts of yours agents may use, and withdraw them.'),
    ...(places && places.issuers.length > 0
      ? [paragraph(`Sign in as you do at ${places.name}.`), ...signInButtons(places)]
      : [
          paragraph(
            'This browser is not known here. Open this page in the browser in which you gave something, or with the address that your organisation has for it. Owners of the organisation can end it for you, too, and so can you in the settings of your account at the platform.',
          ),
        ]),
  ]);

export const noConsentsPage = (cookies: string[]): Reply =>
  page('What you gave', [statusLine('You are signed in, and agents have no access to any of your accounts here.')], {
    'Set-Cookie': cookies,
  });

const BY_HAND = 'To be sure, remove the access in the settings of your account there.';

export const withdrawnPage = (platform: string, revoked: Withdrawn): Reply =>
  page('Withdrawn', [
    statusLine(`Agents can no longer use your ${platform} account.`),
    paragraph(
      {
        yes: `The tokens were revoked at ${platform}, too.`,
        later: `The tokens are deleted here, but could not be revoked at ${platform} yet. This broker tries that again for three days. ${BY_HAND}`,
        no: `The tokens are deleted here, but could not be revoked at ${platform}. ${BY_HAND}`,
      }[revoked],
    ),
    linkButton(MINE_PATH, 'Back to what you gave'),
  ]);

export const leftPage = (cookie: string): Reply =>
  page('Left', [statusLine('This browser no longer shows your accounts.')], { 'Set-Cookie': cookie });
