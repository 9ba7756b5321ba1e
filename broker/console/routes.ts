import type { IncomingHttpHeaders } from 'node:http';
import { PolicyName } from '../config-file/schema.ts';
import { AGENT_ID_PATTERN, UUID_PATTERN } from '../crypto/ids.ts';
import { Refusal } from '../http/errors.ts';
import { noSuchPage } from '../http/pages/no-such-page.ts';
import { pageReply } from '../http/pages/page.ts';
import type { Reply } from '../http/reply.ts';
import { type Route, route } from '../http/route.ts';
import { makeVisitNote } from '../reach.ts';
import { readPages } from './pages.ts';

/** Addresses that people type who only know the broker's host name. */
const WAYS_IN = ['/', '/console/'];

/** Whether the text has the form of an agent id. Without a session, the page must not reveal whether such an agent exists. */
const isAgent = (id: string): boolean => AGENT_ID_PATTERN.test(id) || UUID_PATTERN.test(id);

/** For each page with an id in its address: whether the id is well formed. */
const MAY_BE: Readonly<Record<string, (params: Readonly<Record<string, string>>) => boolean>> = {
  '/console/agents/{id}': ({ id = '' }) => isAgent(id),
  '/console/policies/{name}': ({ name = '' }) => PolicyName.safeParse(name).success,
};

/** Returns the page for an unknown address. Throws Refusal not_found for programs. */
function unknown({ accept }: IncomingHttpHeaders): Reply {
  if (accept?.includes('text/html')) return noSuchPage('console');
  throw new Refusal('not_found', 'No such route.');
}

/** The service worker; it also controls pages above its own folder. */
const WORKER = '/console/worker.js';

/** MCP clients in web pages open these in a popup window, and end the sign-in when the window seems to be closed. */
const IN_POPUP = ['/oauth/consent/{uid}', '/console/sign-in'];

/** Returns the routes of the console's files. `bundle`: as `readPages` takes it. */
export function consoleRoutes(bundle?: string): Route[] {
  const noteVisit = makeVisitNote();
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
  const files = readPages(bundle).map(({ path, summary, type, read }) => {
    const mayBe = MAY_BE[path];
    let reply: ReturnType<typeof pageReply> | undefined;
    return route({
      method: 'GET',
      path,
      auth: 'none',
      capability: 'console.page',
      summary,
      answers: { 200: 'The file.', 304: 'The file that you have is still the same.' },
      errors: mayBe ? ['not_found'] : [],
      handle: async ({ request, params, services: { broker }, source }) => {
        noteVisit(broker, source);
        if (mayBe?.(params) === false) return unknown(request.headers);
        // Public files: compression cannot leak secrets here, since the files contain none.
        reply ??= pageReply(
          { body: read(), type },
          { large: true, popup: IN_POPUP.includes(path), ...(path === WORKER && { workerScope: '/console' }) },
        );
        return reply(request.headers);
      },
    });
  });
  return [...ways, ...files];
}
