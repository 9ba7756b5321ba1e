import { type Route, route } from '../http/route.ts';
import { pageReply, readPages } from './pages.ts';

/** The routes of the console's files. Read when the broker starts, not before. */
export function consoleRoutes(): Route[] {
  return readPages().map((served) => {
    const reply = pageReply(served);
    return route({
      method: 'GET',
      path: served.path,
      auth: 'none',
      capability: 'console.page',
      summary: served.summary,
      answers: { 200: 'The file.', 304: 'The file that you have is still the same.' },
      errors: [],
      handle: async ({ request }) => reply(request.headers['if-none-match']),
    });
  });
}
