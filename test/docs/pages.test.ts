/** The documentation that a broker serves: complete, linked, and compatible with the strict Content-Security-Policy. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { renderMarkdown } from '../../broker/docs/guide-pages.ts';
import { DECISIONS, listGuides, readGuide } from '../../broker/http/guides.ts';
import { isPublic } from '../../broker/http/routes/openapi.ts';
import { servedRoutes } from '../../broker/process/served-routes.ts';
import { send } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { addressesOfPage, makeReader } from '../world/links.ts';
import { givenWorld, shared } from '../world/world.ts';

const GUIDES = listGuides();
const PAGES = ['/docs', '/docs/reference', '/docs/owner-reference', ...GUIDES.map(({ name }) => `/docs/${name}`)];

const world = givenWorld();
const get = (path: string, headers: Record<string, string> = {}) => send(world.running.baseUrl + path, { headers });

describe('the pages', () => {
  /** Shared by all tests, as a cache: every page links to every other page in its menu. */
  const reader = shared(() => makeReader(world.running.baseUrl));

  test('include all guides of docs/, each linked from the first page', async () => {
    const files = readdirSync(join(ROOT, 'docs'), { recursive: true }).map(String);
    const pages = files.filter((name) => name.endsWith('.md') && !name.startsWith(DECISIONS));
    expect(GUIDES.map(({ name }) => `${name}.md`).toSorted()).toEqual([...pages, 'changelog.md'].toSorted());
    expect(GUIDES[0]!.name).toBe('getting-started');
    const { text } = await get('/docs');
    for (const { name } of GUIDES) expect(text).toContain(`href="/docs/${name}"`);
  });

  test('are in a menu with sections, each page once, with unique titles', async () => {
    const { text } = await get('/docs');
    const menu = text.slice(text.indexOf('<nav class="menu"'), text.indexOf('<main'));
    const entries = [...menu.matchAll(/<a class="entry" href="([^"]+)"[^>]*>([^<]+)</g)];
    expect(entries.map(([, href]) => href).toSorted()).toEqual(PAGES.toSorted());
    expect(new Set(entries.map(([, , title]) => title)).size).toBe(entries.length);
    expect([...menu.matchAll(/<p class="part">([^<]+)</g)].map(([, title]) => title)).toEqual([
      'Reference',
      'Guides',
      'Clients',
      'Governing',
      'Running a broker',
      'About',
    ]);
  });

  test.each(PAGES)('%s has a title, one top-level heading, and no inline script or style', async (path) => {
    const { status, headers, text } = await get(path);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(headers.get('content-security-policy')).not.toMatch(/unsafe|https?:|\*/);
    expect(text.match(/<h1/g)).toHaveLength(1);
    expect(text).toMatch(/<title>[^<]+ · Agent Broker<\/title>/);
    expect(text).not.toMatch(/<style|\sstyle="|\son\w+="|<script(?! src="\/docs\/static\/)/);
    expect((await get(path, { 'if-none-match': headers.get('etag')! })).status).toBe(304);
  });

  test.each(PAGES)('every link of %s leads to an existing page and anchor', async (path) => {
    const addresses = addressesOfPage((await get(path)).text);
    expect(addresses.length).toBeGreaterThan(10);
    for (const address of new Set(addresses)) await reader.resolves(address, path);
  });

  test('a search finds the sections that contain all of the words, and shows them as text', async () => {
    const search = async (query: string) => (await get(`/docs/search?q=${encodeURIComponent(query)}`)).text;
    const found = async (query: string) => {
      const text = await search(query);
      const hits = [...text.matchAll(/<a class="guide" href="([^"]+)"><strong>(.*?)<\/strong>(.*?)<\/a>/g)];
      for (const [, href] of hits) await reader.resolves(href!, '/docs/search');
      return hits.map(([, href, heading, rest]) => ({ href, heading, rest }));
    };
    const [first, ...more] = await found('rotate master KEY');
    expect(first!.href).toMatch(/^\/docs\/operations#/);
    expect(first!.rest!.toLowerCase()).toContain('<mark>master</mark>');
    expect(more.length).toBeGreaterThan(0);
    expect((await found('glossary'))[0]).toMatchObject({ href: '/docs/glossary' });
    const hostile = await search('"><script>alert(1)</script>&amp;');
    expect(hostile).not.toContain('<script>alert');
    expect(hostile).toContain('value="&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;&#38;amp;"');
    expect(hostile).toContain('No part of the documentation has all of these words.');
    expect(await search(' ')).toContain('Write one or more words');
    // A regular expression is searched as plain text, and a long query is truncated.
    expect(await found('.* (a|b)+')).toEqual([]);
    expect((await found(`approval ${'x '.repeat(5_000)}`)).length).toBeLessThanOrEqual(30);
  });

  test('every guide is served as Markdown, too', async () => {
    for (const { name } of GUIDES) {
      const { status, headers, text } = await get(`/docs/${name}.md`);
      expect([status, headers.get('content-type')], name).toEqual([200, 'text/markdown; charset=utf-8']);
      expect(text).toMatch(/^# /);
    }
  });

  test('/docs has an anchor for every capability, with the operation in the reference', async () => {
    const { text } = await get('/docs');
    const document = (await get('/v1/openapi.json')).body;
    const routes = servedRoutes().filter(isPublic);
    expect(routes.length).toBeGreaterThan(25);
    for (const { capability, method, path } of routes) {
      const { tags, operationId } = document.paths[path][method.toLowerCase()];
      expect(text, capability).toContain(`<li id="${capability}"`);
      expect(text, capability).toContain(`href="/docs/reference#/${encodeURIComponent(tags[0])}/${operationId}"`);
    }
  });

  test('the link in _meta.docs of an answer leads to the description of that capability', async () => {
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const reader = makeReader(world.running.baseUrl);
    const read = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
    const answers = [
      await agent.act(read),
      await agent.act({ ...read, method: 'POST', scope: 'demo:write', data: {} }),
      await agent.act({ ...read, scope: 'demo:none' }),
      await agent.get('/v1/agent/permissions'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 202, 403, 200]);
    for (const { body } of answers) {
      expect(body._meta.docs).toBe(`${world.running.baseUrl}/docs#${body._meta.capability}`);
      await reader.resolves(body._meta.docs);
      for (const { endpoint } of body._meta.next_actions) await reader.resolves(endpoint);
    }
    await expect(reader.resolves('/docs#nowhere')).rejects.toThrow('no such anchor');
  });

  test('an unknown page is a 404, and no path traversal leaves the folder', async () => {
    for (const path of ['/docs/', '/docs/nothing', '/docs/images/none.png', '/docs/images/..%2f..%2fpackage.json'])
      expect((await get(path)).status, path).toBe(404);
    const { status, headers } = await get('/docs/images/inbox.png');
    expect([status, headers.get('content-type')]).toEqual([200, 'image/png']);
  });

  test('the renderer is sent compressed to clients that accept it, and with the same content uncompressed to others', async () => {
    const packed = await get('/docs/static/swagger-ui.js', { 'accept-encoding': 'gzip' });
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    const plain = await get('/docs/static/swagger-ui.js', { 'accept-encoding': 'identity' });
    expect([plain.status, plain.headers.get('content-encoding')]).toEqual([200, null]);
    expect(packed.text).toBe(plain.text);
    expect(plain.text.length).toBeGreaterThan(1_000_000);
  });
});

describe('Markdown', () => {
  test('gets the anchors of GitHub, a scroll box around wide tables, and its HTML escaped', () => {
    const { html, headings } = renderMarkdown(
      '# A `b`\n\n## A `b`\n\n<script>alert(1)</script>\n\n| a |\n| --- |\n| <b>x</b> |\n\n[x](agents.md#answers) [y](../broker/a.ts)',
      'docs/x.md',
      GUIDES,
    );
    expect(headings.map(({ id }) => id)).toEqual(['a-b', 'a-b-1']);
    expect(html).toContain('<div class="scrolls"');
    expect(html).not.toMatch(/<script|<b>/);
    expect(html).toContain('<a href="/docs/agents#answers">x</a> y');
  });

  test('every link within a guide leads to an anchor that is served', () => {
    for (const guide of GUIDES) {
      const markdown = readGuide(guide);
      const known = new Set(renderMarkdown(markdown, guide.file, GUIDES).headings.map(({ id }) => id));
      const named = [...markdown.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = '']) => anchor);
      expect(
        named.filter((anchor) => !known.has(anchor)),
        guide.name,
      ).toEqual([]);
    }
  });
});
