/** The owner's web pages, served from files. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Served } from '../http/pages/page.ts';
import { present } from '../runtime/present.ts';
import { withPreloads } from './preload.ts';
import { vendored } from './vendor.ts';

/** Pages by their address. The files that they load (`static/x.js`, at `/console/x.js`) are discovered, not listed here. */
const PAGES: readonly { path: string; file: string; summary: string }[] = [
  { path: '/console', file: 'console.html', summary: 'The console: what waits for a decision.' },
  { path: '/console/agents', file: 'console.html', summary: 'The console: the agents.' },
  { path: '/console/agents/new', file: 'console.html', summary: 'The console: inviting an agent.' },
  { path: '/console/agents/{id}', file: 'console.html', summary: 'The console: one agent.' },
  { path: '/console/clients', file: 'console.html', summary: 'The console: the MCP clients that were authorised.' },
  { path: '/console/activity', file: 'console.html', summary: 'The console: what was decided.' },
  { path: '/console/receipt', file: 'console.html', summary: 'The console: a receipt, read and checked.' },
  { path: '/console/overview', file: 'console.html', summary: 'The console: numbers about calls.' },
  { path: '/console/connections', file: 'console.html', summary: 'The console: the connections to platforms.' },
  { path: '/console/policies', file: 'console.html', summary: 'The console: the policies and the guardrails.' },
  { path: '/console/policies/{name}', file: 'console.html', summary: 'The console: one policy, or the guardrails.' },
  { path: '/console/connections/new', file: 'console.html', summary: 'The console: connecting a platform.' },
  { path: '/console/team', file: 'console.html', summary: 'The console: the owners, and what each may.' },
  { path: '/console/people', file: 'console.html', summary: 'The console: people who gave tokens of their own.' },
  { path: '/console/notices', file: 'console.html', summary: 'The console: notification channels of owners.' },
  { path: '/console/audit-sinks', file: 'console.html', summary: 'The console: where the audit is pushed to.' },
  { path: '/console/governance', file: 'console.html', summary: 'The console: the governance file.' },
  { path: '/console/passkeys', file: 'console.html', summary: "The console: an owner's passkeys." },
  {
    path: '/console/standing-approvals',
    file: 'console.html',
    summary: 'The console: standing approvals.',
  },
  { path: '/console/restored', file: 'console.html', summary: 'The console: reviewing a store that was restored.' },
  { path: '/console/reports', file: 'console.html', summary: 'The console: what agents reported.' },
  { path: '/console/settings', file: 'console.html', summary: "The console: the organisation's settings." },
  { path: '/console/sign-in', file: 'sign-in.html', summary: 'Where a sign-in link leads.' },
  { path: '/verify', file: 'verify.html', summary: 'Where anybody checks an export of a receipt log.' },
  { path: '/oauth/consent/{uid}', file: 'consent.html', summary: 'An MCP client asks for access.' },
  { path: '/approve/{id}', file: 'approve.html', summary: 'One held call, to be decided on a phone.' },
];

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webmanifest': 'application/manifest+json',
};

const STATIC = new URL('./static/', import.meta.url);

/** The path at which the bundle made by the build is served. */
export const BUNDLE_PATH = '/console/bundle';
/** The folder where the build writes the bundle. A checkout has no bundle, and runs from the sources. */
const BUNDLE = fileURLToPath(new URL('./bundle/', import.meta.url));

/** A file in the bundle that lists the addresses of the sources served beside it, so that the start need not scan for them. */
export const SOURCES_LIST = 'sources.json';

/** `html`: as in the sources, without preloads. */
type PageSource = { name: string; html: string };

/** Returns all files beside the pages, including the sources of scripts and styles, each read when it is requested; and the pages themselves. */
export function readSources(): { files: Served[]; pages: PageSource[] } {
  const folder = fileURLToPath(STATIC);
  const own = namesBelow(folder)
    .filter((name) => !name.endsWith('.html'))
    .map((name) => ({ path: `/console/${name}`, read: () => readFileSync(join(folder, name)) }));
  const libraries = vendored().map(({ path, text }) => ({ path, read: () => Buffer.from(text()) }));
  const names = [...new Set(PAGES.map(({ file }) => basename(file, '.html')))];
  return {
    files: [...own, ...libraries].map(({ path, read }) => servedAs(path, read)),
    pages: names.map((name) => ({ name, html: readFileSync(join(folder, `${name}.html`), 'utf8') })),
  };
}

/**
 * Returns the pages with the files that they load.
 *
 * @param bundle the folder of the bundle; when it does not exist, the pages load the sources
 */
export const readPages = (bundle = BUNDLE): Served[] =>
  existsSync(bundle) ? pagesOfBundle(bundle) : pagesOfSources(readSources());

/**
 * Returns the pages and files of the bundle, which is read now, so that all files of a page have the same version until the broker stops; the
 * sources beside it are read on request.
 */
function pagesOfBundle(folder: string): Served[] {
  const read = (name: string): Buffer => readFileSync(join(folder, name));
  const parts = readdirSync(folder)
    .filter((name) => name !== SOURCES_LIST && !name.endsWith('.html'))
    .map((name) => servedNow(`${BUNDLE_PATH}/${name}`, read(name)));
  let files: Map<string, Served> | undefined;
  const sourceAt = (path: string): Buffer => {
    files ??= new Map(readSources().files.map((file) => [file.path, file]));
    return present(files.get(path), 'source').read();
  };
  const sources = z.array(z.string()).parse(JSON.parse(read(SOURCES_LIST).toString('utf8')));
  return [...pagesAt(read), ...parts, ...sources.map((path) => servedAs(path, () => sourceAt(path)))];
}

function pagesOfSources({ files, pages }: ReturnType<typeof readSources>): Served[] {
  const loaded = files.map(({ path, read }) => servedNow(path, read()));
  const html = new Map(pages.map((page) => [`${page.name}.html`, page.html]));
  const modules = textsOf(loaded);
  return [...pagesAt((file) => Buffer.from(withPreloads(present(html.get(file), 'page'), modules))), ...loaded];
}

/** Serves each page at its addresses; most pages have the same file at several addresses. */
function pagesAt(read: (file: string) => Buffer): Served[] {
  const bodies = new Map([...new Set(PAGES.map(({ file }) => file))].map((file) => [file, read(file)]));
  return PAGES.map(({ path, file, summary }) => {
    const body = present(bodies.get(file), 'page');
    return { path, summary, type: typeOf(file), read: () => body };
  });
}

const servedAs = (path: string, read: () => Buffer): Served => ({
  path,
  summary: 'Part of the console.',
  type: typeOf(path),
  read,
});

const servedNow = (path: string, body: Buffer): Served => servedAs(path, () => body);

/** Returns the texts of the scripts among the files by path, as `withPreloads` takes them. */
const textsOf = (files: readonly Served[]): Map<string, string> =>
  new Map(files.filter(({ path }) => path.endsWith('.js')).map(({ path, read }) => [path, read().toString('utf8')]));

/** Returns the files in the folder and its subfolders, as relative paths with `/`. */
const namesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'));

function typeOf(file: string): string {
  const type = TYPES[extname(file)];
  if (!type) throw new Error(`The console has a file of a kind that is not served: ${file}`);
  return type;
}
