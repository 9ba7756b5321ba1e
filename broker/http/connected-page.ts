/** The small pages of an owner who comes back from an authorization server. */
import type { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';
import { wordsPage } from './sign-in-page.ts';

const CONNECTIONS = '/console/connections';

/**
 * Comes back to the same address from a page of our own: a browser that comes from another site sends no
 * `SameSite=Strict` cookie along, so nobody would know whose browser it is.
 */
export const onceMorePage = (to: string): Reply =>
  wordsPage(200, {
    title: 'One moment',
    text: 'The authorization server has sent you back.',
    link: { to, text: 'Go on' },
    leads: true,
  });

/**
 * Leads back to the console, where the connection is now to be seen. `unmet`: scopes that agents wait for and that the
 * server did not grant enough for; the page then stays, to be read.
 */
export const connectedPage = (connectionId: string, unmet: readonly string[]): Reply =>
  wordsPage(200, {
    title: 'Connected',
    text:
      unmet.length === 0
        ? 'The platform is connected.'
        : `The platform is connected, but it did not grant what ${unmet.join(', ')} needs: agents that wait for that wait still.`,
    link: { to: `${CONNECTIONS}?connected=${connectionId}`, text: 'Back to the connections' },
    leads: unmet.length === 0,
  });

/** Why nothing was connected, for people. */
export const notConnectedPage = (refusal: Refusal, correlationId: string): Reply =>
  wordsPage(
    refusal.status,
    {
      title: 'Not connected',
      text: `${refusal.message} (${correlationId})`,
      link: { to: CONNECTIONS, text: 'Back to the connections' },
    },
    refusal.headers,
  );
