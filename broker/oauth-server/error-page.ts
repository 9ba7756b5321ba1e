/** Error page for errors that must not be redirected to the client. */
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider';
import type { Config } from '../config.ts';

/** Advice for an application whose client id is the URL of a client ID metadata document; or the empty string. */
function adviceOn(clientId: unknown, clientIdDocuments: boolean): string {
  const url = typeof clientId === 'string' ? URL.parse(clientId) : null;
  if (url?.protocol !== 'https:') return '';
  return clientIdDocuments
    ? `The application is described by a document at ${url.host}, which this broker could not use. Tell whoever runs the broker: let it reach ${url.host}, or set AGENT_BROKER_CLIENT_ID_DOCUMENTS=off, so that applications register instead. The log says what was wrong.`
    : `The application identifies itself by a document at ${url.host}, and this broker does not fetch such documents. Remove the connection in the application and connect again, so that it registers instead.`;
}

const inHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.codePointAt(0)};`);

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** The library's `renderError`. */
export function errorPage(
  context: KoaContextWithOIDC,
  { error, error_description: description }: ErrorOut,
  { clientIdDocuments }: Pick<Config, 'clientIdDocuments'>,
): void {
  const advice = error.startsWith('invalid_client') ? adviceOn(context.query.client_id, clientIdDocuments) : '';
  context.set(HEADERS);
  context.type = 'html';
  context.body = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Not connected · Agent Broker</title>
    <link rel="icon" href="/console/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/console/base.css">
    <link rel="stylesheet" href="/console/sign-in.css">
  </head>
  <body>
    <main>
      <div class="sheet card">
        <p class="brand"><img src="/console/icon.svg" alt="" width="28" height="28">Agent Broker</p>
        <h1>Not connected</h1>
        <p role="status">The request of the application is not valid: ${inHtml(description ?? error)}.</p>
${advice && `        <p>${inHtml(advice)}</p>\n`}        <p>Nothing was granted. Close this page, and connect again from the application.</p>
      </div>
    </main>
  </body>
</html>
`;
}
