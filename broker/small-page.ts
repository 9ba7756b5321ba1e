/** Renders the small pages outside the console: on the way to another site and back, and for people who are not owners. They use no script. */
import { visible } from './console/static/visible.js';

const policy = (forms: string): string =>
  `default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action ${forms}; frame-ancestors 'none'`;

export const PAGE_HEADERS = {
  'Content-Security-Policy': policy("'none'"),
  'X-Frame-Options': 'DENY',
  // The address of such a page may hold a used code and the state.
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/**
 * For pages with forms, which post to this broker only; links lead elsewhere. With `no-referrer` a browser would send `Origin: null` for their forms,
 * which looks like a form of another site.
 */
export const FORM_PAGE_HEADERS = {
  ...PAGE_HEADERS,
  'Content-Security-Policy': policy("'self'"),
  'Referrer-Policy': 'same-origin',
};

/** HTML in which all text is escaped. */
export type Html = { readonly html: string };

/** Escapes text for use in HTML, attributes included. */
export const inHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.codePointAt(0)};`);

/**
 * Builds HTML from a template. Values are escaped unless they are Html. Invisible characters, and those that change the text direction, are shown as
 * code points. Lists are joined.
 */
export const html = (texts: TemplateStringsArray, ...values: (string | number | Html | readonly Html[])[]): Html => ({
  html: texts.reduce((before, text, at) => before + rendered(values[at - 1] ?? '') + text),
});

function rendered(value: string | number | Html | readonly Html[]): string {
  // Names on these pages are chosen by agents, owners and platforms, so they are untrusted.
  if (typeof value === 'string' || typeof value === 'number') return inHtml(visible(String(value)));
  return 'html' in value ? value.html : value.map((one) => one.html).join('\n');
}

export const paragraph = (text: string): Html => html`<p>${text}</p>`;

/** The result of an operation, announced by screen readers. */
export const statusLine = (text: string): Html => html`<p role="status">${text}</p>`;

export const linkButton = (to: string, text: string): Html => html`<a class="button primary" href="${to}">${text}</a>`;

export type FormButton = { action: string; text: string; isPrimary?: boolean };

/** A form with a single button. */
export const formButton = ({ action, text, isPrimary = false }: FormButton): Html =>
  html`<form method="post" action="${action}"><button class="button${isPrimary ? ' primary' : ''}">${text}</button></form>`;

/** `leadsTo`: an address to which the page redirects the browser. */
export type SmallPage = { title: string; parts: readonly Html[]; leadsTo?: string | undefined };

/** Renders the whole document. */
export function smallPage({ title, parts, leadsTo }: SmallPage): string {
  const leads = leadsTo === undefined ? [] : [html`<meta http-equiv="refresh" content="0; url=${leadsTo}">`];
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title} \u00b7 Agent Broker</title>
    <link rel="icon" href="/console/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/console/base.css">
    <link rel="stylesheet" href="/console/sign-in.css">
    ${leads}
  </head>
  <body>
    <main>
      <div class="sheet card">
        <p class="brand"><img src="/console/icon.svg" alt="" width="28" height="28">Agent Broker</p>
        <h1>${title}</h1>
${parts}
      </div>
    </main>
  </body>
</html>
`.html;
}
