/** The routes of /docs. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Refusal } from '../http/errors.ts';
import { type Guide, listGuides, readGuide, readPicture } from '../http/guides.ts';
import { pageReply, type Served } from '../http/pages/page.ts';
import type { Reply } from '../http/reply.ts';
import { type Context, type Route, route } from '../http/route.ts';
import { isPublic } from '../http/routes/openapi.ts';
import { guidePage } from './guide-pages.ts';
import { referencePages, referenceParts } from './reference.ts';
import { makeSearch } from './search.ts';
import { startPage } from './start-page.ts';

const HTML = 'text/html; charset=utf-8';
const STATIC = new URL('./static/', import.meta.url);
const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

/** Returns the routes of the docs. Files are read on demand, except for the first lines of the guides. */
export function docsRoutes(routes: readonly Route[]): Route[] {
  const parts = referenceParts();
  const guides = listGuides();
  const pages: [string, string, () => string][] = [
    ['/docs', 'The documentation: guides, and every operation.', () => startPage(routes.filter(isPublic), guides)],
    ...referencePages(parts.length > 0, guides).map(({ path, html }): [string, string, () => string] => [
      path,
      'An API reference.',
      () => html,
    ]),
    ...guides.map((guide): [string, string, () => string] => [
      `/docs/${guide.name}`,
      `A guide: ${guide.title}.`,
      () => guidePage(guide, guides),
    ]),
  ];
  return [
    ...pages.map(([path, summary, render]) =>
      page(path, summary, () =>
        pageReply({ body: Buffer.from(render()), type: HTML }, { pictures: true, forms: true }),
      ),
    ),
    search(guides),
    ...guides.map((guide) =>
      page(`/docs/${guide.name}.md`, 'A guide, as Markdown.', () =>
        pageReply({ body: Buffer.from(readGuide(guide)), type: 'text/markdown; charset=utf-8' }),
      ),
    ),
    ...[...ownParts(), ...parts].map((part) =>
      page(part.path, part.summary, () => pageReply({ body: part.read(), type: part.type }, { large: true })),
    ),
    picture,
  ];
}

/** Returns the route of one page, rendered at the first request. */
function page(path: string, summary: string, make: () => ReturnType<typeof pageReply>): Route {
  let made: ReturnType<typeof pageReply> | undefined;
  return route({
    method: 'GET',
    path,
    auth: 'none',
    capability: 'docs.page',
    summary,
    answers: { 200: 'The page.', 304: 'The page has not changed (ETag).' },
    errors: [],
    handle: async ({ request }) => {
      made ??= make();
      return made(request.headers);
    },
  });
}

function search(guides: readonly Guide[]): Route {
  const find = makeSearch(guides);
  return route({
    method: 'GET',
    path: '/docs/search',
    auth: 'none',
    capability: 'docs.search',
    summary: 'Parts of the guides that have all words of `q`.',
    // Each search scans all guides.
    limit: { name: 'docs-search', perMinute: 120, per: 'address' },
    answers: { 200: { description: 'The page.', type: 'text/html' } },
    errors: [],
    handle: async ({ query, headers }) =>
      pageReply(
        { body: Buffer.from(find(query.get('q') ?? '')), type: HTML },
        { pictures: true, forms: true },
      )(headers),
  });
}

const picture = route({
  method: 'GET',
  path: '/docs/images/{name}',
  auth: 'none',
  capability: 'docs.picture',
  summary: 'A picture of a guide.',
  answers: { 200: { description: 'The picture.', type: 'image/png' } },
  errors: ['not_found'],
  handle: async ({ params, request }: Context<'none', undefined, URLSearchParams, 'name'>): Promise<Reply> => {
    const body = readPicture(params.name);
    if (!body) throw new Refusal('not_found', 'There is no such picture.');
    return pageReply({ body, type: 'image/png' })(request.headers);
  },
});

function ownParts(): Served[] {
  return readdirSync(fileURLToPath(STATIC)).map((file) => ({
    path: `/docs/static/${file}`,
    summary: 'Part of the documentation.',
    read: () => readFileSync(new URL(file, STATIC)),
    type: TYPES[file.endsWith('.css') ? 'css' : 'js'],
  }));
}
