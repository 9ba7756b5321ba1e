import { type Route, route } from '../http/route.ts';
import { PAGES, pageReply } from './pages.ts';

/** The routes of the console's files. Read when the broker starts, not before. */
export function consoleRoutes(): Route[] {
  return PAGES.map((page) => {
    const reply = pageReply(page);
    return route({
      method: 'GET',
      path: page.path,
      auth: 'none',
      capability: 'console.page',
      summary: page.summary,
      answers: { 200: 'The file.' },
      errors: [],
      handle: async () => reply(),
    });
  });
}
