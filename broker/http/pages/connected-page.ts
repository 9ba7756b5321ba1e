/** The small pages for an owner who returns from an authorization server. */
import type { Refusal } from '../errors.ts';
import type { Reply } from '../reply.ts';
import { textPage } from './sign-in-page.ts';

const CONNECTIONS = '/console/connections';

/**
 * Reloads the same address from a page of our own: on a navigation from another site the browser does not send the `SameSite=Strict` cookie, so the
 * session would be unknown.
 */
export const onceMorePage = (to: string): Reply =>
  textPage(200, {
    title: 'One moment',
    text: 'The authorization server has sent you back.',
    link: { to, text: 'Go on' },
    leads: true,
  });

/**
 * Leads back to the console, which now lists the connection. `unmet`: scopes that agents wait for and that the server did not grant in full; the page
 * then stays open, so that it can be read.
 */
export const connectedPage = (connectionId: string, unmet: readonly string[]): Reply =>
  textPage(200, {
    title: 'Connected',
    text:
      unmet.length === 0
        ? 'The platform is connected.'
        : `The platform is connected, but it did not grant what ${unmet.join(', ')} needs: agents that wait for that wait still.`,
    link: { to: `${CONNECTIONS}?connected=${connectionId}`, text: 'Back to the connections' },
    leads: unmet.length === 0,
  });

/** Shows why nothing was connected. */
export const notConnectedPage = (refusal: Refusal, correlationId: string): Reply =>
  textPage(
    refusal.status,
    {
      title: 'Not connected',
      text: `${refusal.message} (${correlationId})`,
      link: { to: CONNECTIONS, text: 'Back to the connections' },
    },
    refusal.headers,
  );
