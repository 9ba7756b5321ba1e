/** Pages for a person who is asked for a consent: the request, and its result. */
import type { ConsentShown } from '../../admin/people/person-consent.ts';
import { FORM_PAGE_HEADERS, type FormButton, formButton, linkButton, paragraph } from '../../small-page.ts';
import type { Refusal } from '../errors.ts';
import type { Reply } from '../reply.ts';
import { pageOf, textPage } from './sign-in-page.ts';

type Cookies = readonly string[];

/** `again`: the consent's page, to which a link leads. */
type Sheet = {
  title: string;
  paragraphs: readonly string[];
  buttons?: readonly FormButton[];
  again?: string | undefined;
};

/** A page of paragraphs and buttons. */
const sheet = (
  status: number,
  { title, paragraphs, buttons = [], again }: Sheet,
  headers: Record<string, string | string[]> = {},
): Reply =>
  pageOf(
    status,
    {
      title,
      parts: [
        ...paragraphs.map(paragraph),
        ...buttons.map(formButton),
        ...(again === undefined ? [] : [linkButton(again, 'Begin again')]),
      ],
    },
    { ...FORM_PAGE_HEADERS, ...headers },
  );

const WITHDRAW =
  'You can withdraw at any time: on the page to which this leads at the end, in your account settings at the platform, or by asking the owners of the organisation to end it.';

/** Shows what is requested from the person. `path`: the consent's page. */
export function offerPage(path: string, shown: ConsentShown): Reply {
  const { agent, organisation, platform, scopes, namedBy, verified, confirms } = shown;
  return sheet(200, {
    title: `Connect your ${platform} account`,
    paragraphs: [
      `The agent “${agent}” of the organisation “${organisation}” asks to use ${platform} as you. Every agent to which the organisation grants this connection of ${platform} can then use it for you.`,
      scopes.length === 0
        ? `${platform} will show you which rights are requested.`
        : `The requested rights: ${scopes.join(', ')}.`,
      verified
        ? `It says that you are somebody who is known at ${hostOf(namedBy)}. You sign in there first, and only that person can go on.`
        : `It says that you are a certain person of “${namedBy}”. Nobody has checked that: continue only if you asked for this, in “${namedBy}”, yourself.${confirms ? ' An owner of the organisation confirms your account before it is used.' : ''}`,
      WITHDRAW,
    ],
    buttons: [
      {
        action: `${path}/start`,
        text: verified ? `Sign in at ${hostOf(namedBy)}` : `Go to ${platform}`,
        isPrimary: true,
      },
    ],
  });
}

const hostOf = (issuer: string): string => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

/** Shows whose account was connected, and asks whether to keep it. */
export function keepPage(path: string, { agent, organisation, platform, obtained, confirms }: ConsentShown): Reply {
  const account = obtained?.account ?? null;
  return sheet(200, {
    title: account === null ? 'Use this account?' : `Use the account ${account}?`,
    paragraphs: [
      account === null
        ? `${platform} signed you in, and does not report with which account. Agents of “${organisation}” will read and write there on behalf of the person whom they identify as you.`
        : `${platform} has let you in as ${account}. Agents of “${organisation}”, such as “${agent}”, will read and write there for you.`,
      'If you did not ask for this yourself, or if this is not your own account, do not keep it.',
      ...(confirms
        ? ['An owner of the organisation sees the name of this account, and confirms it before it is used.']
        : []),
    ],
    buttons: [
      { action: `${path}/keep`, text: 'Yes, it is mine: keep it', isPrimary: true },
      { action: `${path}/discard`, text: 'Do not keep it', isPrimary: false },
    ],
  });
}

/** Redirects the browser to another site by the page itself: a form of this page may not lead there (Content-Security-Policy, form-action). */
export const leadPage = (to: string, cookies: Cookies): Reply =>
  textPage(
    200,
    { title: 'One moment', text: 'You are sent on to sign in.', link: { to, text: 'Go on' }, leads: true },
    { 'Set-Cookie': [...cookies] },
  );

/** Redirects to the consent's page. */
export const backTo = (path: string): Reply => ({ status: 303, headers: { ...FORM_PAGE_HEADERS, Location: path } });

/** Shown after the consent. `mine`: the page where people see what they gave. */
export const donePage = (confirms: boolean, mine: string, cookies: Cookies): Reply =>
  pageOf(
    200,
    {
      title: 'Done',
      parts: [
        paragraph(
          confirms
            ? 'Your account is connected. An owner of the organisation has to confirm it before agents use it.'
            : 'Your account is connected. The agent can go on.',
        ),
        paragraph('You can close this page, or see what you gave, and withdraw it.'),
        linkButton(mine, 'See what you gave'),
      ],
    },
    cookies.length > 0 ? { 'Set-Cookie': [...cookies] } : {},
  );

/** Shown for a link that was used already, to the same person or to somebody else. */
export const usedPage = (awaitsOwner: boolean, mine: string): Reply =>
  pageOf(
    200,
    {
      title: 'Given already',
      parts: [
        paragraph('This consent was already given, so this link is used up.'),
        ...(awaitsOwner
          ? [paragraph('An owner of the organisation has to confirm the account before agents use it.')]
          : []),
        paragraph('If you gave it, you can see it in the browser in which you did, and withdraw it.'),
        paragraph('If it was meant for you and somebody else gave it, tell the person who sent you the link.'),
        linkButton(mine, 'See what you gave'),
      ],
    },
    {},
  );

/** Shown after the person discarded the account. `again`: the page of the consent, which is still pending. */
export const discardedPage = (again: string): Reply =>
  sheet(200, {
    title: 'Not connected',
    paragraphs: ['Nothing was kept. You can close this page, or begin again, with another account if you like.'],
    again,
  });

/** Shows why the consent cannot continue. `again`: the consent's page, where it can be started again. */
export const noConsentPage = (refusal: Refusal, correlationId: string, again?: string): Reply =>
  sheet(
    refusal.status,
    { title: 'This cannot go on', paragraphs: [`${refusal.message} (${correlationId})`], again },
    refusal.headers,
  );
