/** The pages of a person who is asked for a consent: what is asked, and what came of it. */
import type { ConsentShown } from '../admin/person-consent.ts';
import type { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';
import { inHtml, PAGE_HEADERS, wordsPage } from './sign-in-page.ts';

/** Forms of these pages go to this broker only; what leads elsewhere is a link. */
const HEADERS = {
  ...PAGE_HEADERS,
  'Content-Security-Policy': PAGE_HEADERS['Content-Security-Policy'].replace(
    "form-action 'none'",
    "form-action 'self'",
  ),
};

type Cookies = readonly string[];

const html = (status: number, body: string, headers: Record<string, string | string[]> = {}): Reply => ({
  status,
  type: 'text/html; charset=utf-8',
  headers: { ...HEADERS, ...headers },
  body,
});

type Button = { action: string; text: string; isPrimary: boolean };
type Sheet = { title: string; paragraphs: readonly string[]; buttons?: readonly Button[] };

function sheet({ title, paragraphs, buttons = [] }: Sheet): string {
  const forms = buttons.map(
    ({ action, text, isPrimary }) =>
      `        <form method="post" action="${inHtml(action)}"><button class="button${isPrimary ? ' primary' : ''}">${inHtml(text)}</button></form>`,
  );
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${inHtml(title)} · Agent Broker</title>
    <link rel="icon" href="/console/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/console/base.css">
    <link rel="stylesheet" href="/console/sign-in.css">
  </head>
  <body>
    <main>
      <div class="sheet card">
        <p class="brand"><img src="/console/icon.svg" alt="" width="28" height="28">Agent Broker</p>
        <h1>${inHtml(title)}</h1>
${paragraphs.map((text) => `        <p>${inHtml(text)}</p>`).join('\n')}
${forms.join('\n')}
      </div>
    </main>
  </body>
</html>
`;
}

const WITHDRAW =
  'You can withdraw at any time: in your account settings at the platform, or by asking the owners of the organisation to end it.';

/** What is asked of the person. `path`: of the consent's page. */
export function offerPage(path: string, shown: ConsentShown): Reply {
  const { agent, organisation, platform, scopes, namedBy, verified, confirms } = shown;
  return html(
    200,
    sheet({
      title: `Connect your ${platform} account`,
      paragraphs: [
        `The agent “${agent}” of the organisation “${organisation}” asks to use ${platform} as you. Every agent to which the organisation grants this connection of ${platform} can then use it for you.`,
        scopes.length === 0
          ? `${platform} will tell you which rights are asked for.`
          : `The rights that are asked for: ${scopes.join(', ')}.`,
        verified
          ? `It says that you are somebody who is known at ${hostOf(namedBy)}. You sign in there first, and only that person can go on.`
          : `It says that you are a certain person of “${namedBy}”. Nobody has checked that: go on only if you asked for this, in “${namedBy}”, yourself.${confirms ? ' An owner of the organisation confirms your account before it is used.' : ''}`,
        WITHDRAW,
      ],
      buttons: [
        {
          action: `${path}/start`,
          text: verified ? `Sign in at ${hostOf(namedBy)}` : `Go to ${platform}`,
          isPrimary: true,
        },
      ],
    }),
  );
}

const hostOf = (issuer: string): string => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

/** Whose account it is, and whether it is to be kept. */
export function keepPage(path: string, { agent, organisation, platform, obtained, confirms }: ConsentShown): Reply {
  const account = obtained?.account ?? null;
  return html(
    200,
    sheet({
      title: account === null ? 'Use this account?' : `Use the account ${account}?`,
      paragraphs: [
        account === null
          ? `${platform} has let you in, and does not say with which account. Whoever agents of “${organisation}” take you for will read and write there.`
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
    }),
  );
}

/** Leads on to another site, by itself: a form of this page may not (Content-Security-Policy, form-action). */
export const leadPage = (to: string, cookies: Cookies): Reply =>
  html(
    200,
    wordsPage({ title: 'One moment', text: 'You are sent on to sign in.', link: { to, text: 'Go on' }, leads: true }),
    { 'Set-Cookie': [...cookies] },
  );

/** Back to the page of the consent. */
export const backTo = (path: string): Reply => ({ status: 303, headers: { ...HEADERS, Location: path } });

export const donePage = (confirms: boolean): Reply =>
  html(
    200,
    sheet({
      title: 'Done',
      paragraphs: [
        confirms
          ? 'Your account is connected. An owner of the organisation has to confirm it before agents use it.'
          : 'Your account is connected. The agent can go on.',
        'You can close this page.',
      ],
    }),
  );

export const discardedPage = (): Reply =>
  html(200, sheet({ title: 'Not connected', paragraphs: ['Nothing was kept. You can close this page.'] }));

/** Why it cannot go on, for people. */
export const noConsentPage = (refusal: Refusal, correlationId: string): Reply =>
  html(
    refusal.status,
    sheet({ title: 'This cannot go on', paragraphs: [`${refusal.message} (${correlationId})`] }),
    refusal.headers,
  );
