/** Small pages on the way to an identity provider or authorization server and back: text and one link. */
import { type Html, linkButton, PAGE_HEADERS, smallPage, statusLine } from '../../small-page.ts';
import type { Refusal } from '../errors.ts';
import type { Reply } from '../reply.ts';

/** `leads`: the page redirects the browser by itself. */
export type PageText = { title: string; text: string; link: { to: string; text: string }; leads?: boolean };

type Headers = Record<string, string | string[]>;

/** Builds a page from parts; `headers` are added to those of every such page, or override them. */
export const pageOf = (
  status: number,
  { title, parts, leadsTo }: { title: string; parts: readonly Html[]; leadsTo?: string | undefined },
  headers: Headers = {},
): Reply => ({
  status,
  type: 'text/html; charset=utf-8',
  headers: { ...PAGE_HEADERS, ...headers },
  body: smallPage({ title, parts, leadsTo }),
});

export const textPage = (status: number, { title, text, link, leads }: PageText, headers: Headers = {}): Reply =>
  pageOf(
    status,
    { title, parts: [statusLine(text), linkButton(link.to, link.text)], leadsTo: leads ? link.to : undefined },
    headers,
  );

/** The sign-in may take place in a window that an MCP client in a web page opened for the consent: see `popup` of `pageReply`. */
const IN_POPUP = { 'Cross-Origin-Opener-Policy': 'unsafe-none' };

/**
 * Leads on to a page of the console. A redirect would not work: on a navigation from another site the browser does not send the `SameSite=Strict`
 * cookie, so the owner would seem not to be signed in. `chosen`: where the owner signed in because another site said so; then the page leads on by a click
 * only, because whoever made that link may want to be sent what the owner enters.
 */
export const signedInPage = (to: string, cookies: string[], chosen?: { organisation: string; email: string }): Reply =>
  textPage(
    200,
    {
      title: 'Signed in',
      text: chosen
        ? `You are signed in to the organisation ${chosen.organisation} as ${chosen.email}. A link of another site chose it: what you do in the console now, you do there.`
        : 'You are signed in.',
      link: { to, text: 'Go to the console' },
      leads: chosen === undefined,
    },
    { ...IN_POPUP, 'Set-Cookie': cookies },
  );

/** Shows why nobody was signed in. `page`: where the sign-in was to lead. */
export const notSignedInPage = (
  refusal: Refusal,
  correlationId: string,
  { cookies, page }: { cookies: string[]; page: string },
): Reply =>
  textPage(
    refusal.status,
    {
      title: 'Not signed in',
      text: `${refusal.message} (${correlationId})`,
      link: {
        to: page === '/console' ? '/console/sign-in' : `/console/sign-in?page=${encodeURIComponent(page)}`,
        text: 'Back to signing in',
      },
    },
    { ...IN_POPUP, ...refusal.headers, ...(cookies.length > 0 && { 'Set-Cookie': cookies }) },
  );
