/** Error pages, for errors that must not be redirected to the client, or not without a click. */
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider';
import type { Config } from '../environment/config.ts';
import { linkButton, PAGE_HEADERS, paragraph, smallPage, statusLine } from '../small-page.ts';
import { LOOPBACK_HOSTS } from './client-metadata.ts';

/** Returns advice for an application that the broker does not know. */
function adviceOn(clientId: unknown, clientIdDocuments: boolean): string {
  const url = typeof clientId === 'string' ? URL.parse(clientId) : null;
  if (url?.protocol !== 'https:')
    return 'The broker does not know this application, or its registration was removed. Remove the connection in the application and add it again, so that it registers again; connecting alone is not enough.';
  return clientIdDocuments
    ? `The application is described by a document at ${url.host}, which this broker could not use. Tell the operator of the broker: allow it to reach ${url.host}, or set AGENT_BROKER_CLIENT_ID_DOCUMENTS=off, so that applications register instead. The log says what was wrong.`
    : `The application identifies itself by a document at ${url.host}, and this broker does not fetch such documents. Remove the connection in the application and connect again, so that it registers instead.`;
}

/** The library's `renderError`. */
export function errorPage(
  context: KoaContextWithOIDC,
  { error, error_description: description }: ErrorOut,
  { clientIdDocuments }: Pick<Config, 'clientIdDocuments'>,
): void {
  const advice = error.startsWith('invalid_client') ? adviceOn(context.query.client_id, clientIdDocuments) : '';
  context.set(PAGE_HEADERS);
  context.type = 'html';
  // Opened again, as by the browser's back button, after an owner decided: something may have been granted.
  if (context.oidc?.route === 'resume') {
    context.body = smallPage({
      title: 'Nothing to continue',
      parts: [
        statusLine(
          'The request of the application was answered already, has expired, or was started in another browser.',
        ),
        paragraph(
          'Close this page. If the application is not connected, connect again from it. The console lists applications that were allowed, under MCP clients.',
        ),
      ],
    });
    return;
  }
  context.body = smallPage({
    title: 'Not connected',
    parts: [
      statusLine(`The request of the application is not valid: ${description ?? error}.`),
      ...(advice === '' ? [] : [paragraph(advice)]),
      // With advice, the first step is in the paragraph above.
      paragraph(
        `Nothing was granted. Close this page${advice === '' ? ', and connect again from the application' : ''}.`,
      ),
    ],
  });
}

/**
 * Middleware that replaces the redirect of an invalid authorization request by a page with a link. Anybody may register a client, so that otherwise a link
 * to the broker would lead to any site before the person has signed in (RFC 9700 section 4.11.2). Programs on the person's own machine
 * wait for the error, and get it.
 */
export async function askBeforeErrorRedirect(context: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> {
  await next();
  const { oidc, response } = context;
  const location = oidc?.route === 'authorization' ? URL.parse(response.get('location')) : null;
  // A valid request leads to the consent page, by a relative address.
  if (location === null || LOOPBACK_HOSTS.includes(location.hostname)) return;
  const said = new URLSearchParams(location.hash === '' ? location.search : location.hash.slice(1));
  context.remove('location');
  context.set(PAGE_HEADERS);
  context.status = 400;
  context.type = 'html';
  context.body = smallPage({
    title: 'Not connected',
    parts: [
      statusLine(`The request of the application is not valid: ${said.get('error_description') ?? said.get('error')}.`),
      paragraph(
        'Nothing was granted. Close this page, or go back to the application, which nobody here has checked. If somebody sent you this link, close the page.',
      ),
      linkButton(location.href, `Go to ${location.host || location.protocol}`),
    ],
  });
}
