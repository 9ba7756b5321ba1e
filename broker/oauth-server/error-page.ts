/** Error page for errors that must not be redirected to the client. */
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider';
import type { Config } from '../environment/config.ts';
import { PAGE_HEADERS, paragraph, smallPage, statusLine } from '../small-page.ts';

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
