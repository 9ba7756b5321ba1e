import { pageReply } from '../http/page.ts';
import { type Route, route } from '../http/route.ts';
import { readPages } from './pages.ts';

/** What people type who know no more than where the broker is. */
const WAYS_IN = ['/', '/console/'];

/** The routes of the console's files. Read when the broker starts, not before. */
export function consoleRoutes(): Route[] {
  const ways = WAYS_IN.map((path) =>
    route({
      method: 'GET',
      path,
      auth: 'none',
      capability: 'console.page',
      summary: 'Leads to the console.',
      answers: { 302: 'To the console.' },
      errors: [],
      handle: async () => ({ status: 302, headers: { Location: '/console' } }),
    }),
  );
  const files = readPages().map((served) => {
    // Public files: nothing secret is compressed with them.
    const reply = pageReply(served, { large: true });
    return route({
      method: 'GET',
      path: served.path,
      auth: 'none',
      capability: 'console.page',
      summary: served.summary,
      answers: { 200: 'The file.', 304: 'The file that you have is still the same.' },
      errors: [],
      handle: async ({ request }) => reply(request.headers),
    });
  });
  return [...ways, ...files];
}
