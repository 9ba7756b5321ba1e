/** The small pages on the way to an identity provider or authorization server and back: words and one link. */
import type { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';

export const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  // The address of this page holds a code, which is used up, and the state.
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Text as it may stand in HTML, attributes included. */
export const inHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.codePointAt(0)};`);

export type Words = { title: string; text: string; link: { to: string; text: string }; leads?: boolean };

/** HTML of one; `leads`: the browser goes there by itself. */
export function wordsPage({ title, text, link, leads }: Words): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${inHtml(title)} · Agent Broker</title>
    <link rel="icon" href="/console/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/console/base.css">
    <link rel="stylesheet" href="/console/sign-in.css">
${leads ? `    <meta http-equiv="refresh" content="0; url=${inHtml(link.to)}">\n` : ''}  </head>
  <body>
    <main>
      <div class="sheet card">
        <p class="brand"><img src="/console/icon.svg" alt="" width="28" height="28">Agent Broker</p>
        <h1>${inHtml(title)}</h1>
        <p role="status">${inHtml(text)}</p>
        <a class="button primary" href="${inHtml(link.to)}">${inHtml(link.text)}</a>
      </div>
    </main>
  </body>
</html>
`;
}

/**
 * Leads on to a page of the console. A redirect would not do: a browser that comes from another site sends no
 * `SameSite=Strict` cookie along with it, so the owner would seem not to be signed in.
 */
export function signedInPage(to: string, cookies: string[]): Reply {
  const words = {
    title: 'Signed in',
    text: 'You are signed in.',
    link: { to, text: 'Go to the console' },
    leads: true,
  };
  return {
    status: 200,
    type: 'text/html; charset=utf-8',
    headers: { ...PAGE_HEADERS, 'Set-Cookie': cookies },
    body: wordsPage(words),
  };
}

/** Why nobody was signed in, for people. */
export function notSignedInPage(refusal: Refusal, correlationId: string, cookies: string[]): Reply {
  return {
    status: refusal.status,
    type: 'text/html; charset=utf-8',
    headers: { ...PAGE_HEADERS, ...refusal.headers, ...(cookies.length > 0 && { 'Set-Cookie': cookies }) },
    body: wordsPage({
      title: 'Not signed in',
      text: `${refusal.message} (${correlationId})`,
      link: { to: '/console/sign-in', text: 'Back to signing in' },
    }),
  };
}
