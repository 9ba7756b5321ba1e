/** The owner's web pages: files. */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Served } from '../http/page.ts';
import { present } from '../policy/present.ts';
import { withPreloads } from './preload.ts';
import { vendored } from './vendor.ts';

/** Pages by their address. What they load (`static/x.js`, at `/console/x.js`) is found by itself. */
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
  { path: '/console/notices', file: 'console.html', summary: 'The console: where owners are told.' },
  { path: '/console/audit-sinks', file: 'console.html', summary: 'The console: where the audit is pushed to.' },
  { path: '/console/governance', file: 'console.html', summary: 'The console: the governance file.' },
  { path: '/console/passkeys', file: 'console.html', summary: "The console: an owner's passkeys." },
  {
    path: '/console/standing-approvals',
    file: 'console.html',
    summary: 'The console: calls that pass without being asked for.',
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

/** Everything that the pages are made of, read from disk. Throws when a file is not part of this build. */
export function readPages(): Served[] {
  const read = (file: string) => readFileSync(new URL(file, STATIC));
  const parts = readdirSync(fileURLToPath(STATIC), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.html'))
    .map((entry) => relative(fileURLToPath(STATIC), join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    .map((file) => ({ path: `/console/${file}`, summary: 'Part of the console.', body: read(file) }));
  const libraries = vendored().map(({ path, text }) => ({
    path,
    summary: 'A library of the console.',
    body: Buffer.from(text),
  }));
  const loaded = [...parts, ...libraries].map((part) => ({ ...part, type: typeOf(part.path) }));
  const modules = new Map(
    loaded.filter(({ path }) => path.endsWith('.js')).map(({ path, body }) => [path, body.toString('utf8')]),
  );
  // Most addresses have the same file.
  const bodies = new Map(
    [...new Set(PAGES.map(({ file }) => file))].map((file) => [
      file,
      Buffer.from(withPreloads(read(file).toString('utf8'), modules)),
    ]),
  );
  const pages = PAGES.map(({ path, file, summary }) => ({
    path,
    summary,
    body: present(bodies.get(file), 'page'),
    type: typeOf(file),
  }));
  // `/console/agents/{id}` would take `/console/agents/agents.js` for an agent's: what is more general comes last.
  const isGeneral = ({ path }: Served) => path.includes('{');
  return [...pages.filter((page) => !isGeneral(page)), ...loaded, ...pages.filter(isGeneral)];
}

function typeOf(file: string): string {
  const type = TYPES[extname(file)];
  if (!type) throw new Error(`The console has a file of a kind that is not served: ${file}`);
  return type;
}
