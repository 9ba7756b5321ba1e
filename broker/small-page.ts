/** The small pages that stand beside the console: on the way to another site and back, and those of people who are no owners. No script. */
import { visible } from './console/static/visible.js';

const policy = (forms: string): string =>
  `default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action ${forms}; frame-ancestors 'none'`;

export const PAGE_HEADERS = {
  'Content-Security-Policy': policy("'none'"),
  'X-Frame-Options': 'DENY',
  // The address of such a page may hold a code, which is used up, and the state.
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/**
 * Of pages with forms, which go to this broker only; what leads elsewhere is a link. With `no-referrer` a browser would say of their forms
 * that they come from nowhere (`Origin: null`), as of those of another site.
 */
export const FORM_PAGE_HEADERS = {
  ...PAGE_HEADERS,
  'Content-Security-Policy': policy("'self'"),
  'Referrer-Policy': 'same-origin',
};

/** HTML in which every text is escaped. */
export type Html = { readonly html: string };

/** Text as it may stand in HTML, attributes included. */
export const inHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.codePointAt(0)};`);

/**
 * HTML from a template: what is put in is escaped, unless it is HTML already, and characters in it that show nothing, or turn the text around, are shown by
 * their number; lists are joined.
 */
export const html = (texts: TemplateStringsArray, ...values: (string | number | Html | readonly Html[])[]): Html => ({
  html: texts.reduce((before, text, at) => before + written(values[at - 1] ?? '') + text),
});

function written(value: string | number | Html | readonly Html[]): string {
  // Names on these pages are what agents, owners and platforms chose.
  if (typeof value === 'string' || typeof value === 'number') return inHtml(visible(String(value)));
  return 'html' in value ? value.html : value.map((one) => one.html).join('\n');
}

export const paragraph = (text: string): Html => html`<p>${text}</p>`;

/** What came of something: read out by screen readers. */
export const statusLine = (text: string): Html => html`<p role="status">${text}</p>`;

export const linkButton = (to: string, text: string): Html => html`<a class="button primary" href="${to}">${text}</a>`;

export type FormButton = { action: string; text: string; isPrimary?: boolean };

/** A form of one button. */
export const formButton = ({ action, text, isPrimary = false }: FormButton): Html =>
  html`<form method="post" action="${action}"><button class="button${isPrimary ? ' primary' : ''}">${text}</button></form>`;

/** `leadsTo`: an address to which the browser goes on by itself. */
export type SmallPage = { title: string; parts: readonly Html[]; leadsTo?: string | undefined };

/** The whole document. */
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
