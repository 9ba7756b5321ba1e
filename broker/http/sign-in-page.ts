/** The small pages on the way to an identity provider or authorization server and back: words and one link. */
import { type Html, linkButton, PAGE_HEADERS, smallPage, statusLine } from '../small-page.ts';
import type { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';

/** `leads`: the browser goes there by itself. */
export type Words = { title: string; text: string; link: { to: string; text: string }; leads?: boolean };

type Headers = Record<string, string | string[]>;

/** A page of parts; `headers` beside those of every such page, or instead of them. */
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

export const wordsPage = (status: number, { title, text, link, leads }: Words, headers: Headers = {}): Reply =>
  pageOf(
    status,
    { title, parts: [statusLine(text), linkButton(link.to, link.text)], leadsTo: leads ? link.to : undefined },
    headers,
  );

/**
 * Leads on to a page of the console. A redirect would not do: a browser that comes from another site sends no
 * `SameSite=Strict` cookie along with it, so the owner would seem not to be signed in.
 */
export const signedInPage = (to: string, cookies: string[]): Reply =>
  wordsPage(
    200,
    { title: 'Signed in', text: 'You are signed in.', link: { to, text: 'Go to the console' }, leads: true },
    { 'Set-Cookie': cookies },
  );

/** Why nobody was signed in, for people. */
export const notSignedInPage = (refusal: Refusal, correlationId: string, cookies: string[]): Reply =>
  wordsPage(
    refusal.status,
    {
      title: 'Not signed in',
      text: `${refusal.message} (${correlationId})`,
      link: { to: '/console/sign-in', text: 'Back to signing in' },
    },
    { ...refusal.headers, ...(cookies.length > 0 && { 'Set-Cookie': cookies }) },
  );
