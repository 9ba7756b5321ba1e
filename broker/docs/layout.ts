/** The layout of every page of /docs. Nothing inline: no style, no script. */
import type { Guide } from '../http/guides.ts';
import { inHtml } from '../small-page.ts';

/** A page. `body` and `aside` are HTML; `path`: its path, to mark it in the menu; `wide`: the page sets its own width. */
export type Page = {
  /** The search query. */
  query?: string;
  path: string;
  title: string;
  body: string;
  aside?: string;
  head?: string;
  wide?: true;
};

const REFERENCES = [
  { path: '/docs', title: 'Overview' },
  { path: '/docs/reference', title: 'Agent API reference' },
  { path: '/docs/owner-reference', title: 'Owner API reference' },
];

/** The sections of the menu, in order; a page that is in none is listed in the last one. */
const PARTS: readonly { title: string; has: readonly string[] }[] = [
  {
    title: 'Guides',
    has: ['getting-started', 'agents', 'approvals', 'notices', 'console', 'terminal', 'by-hand'],
  },
  { title: 'Clients', has: ['clients/', 'lab'] },
  {
    title: 'Governing',
    has: ['governance', 'platforms', 'queries', 'people', 'git', 'unmodified', 'owner-api', 'receipts', 'audit-push'],
  },
  { title: 'Running a broker', has: ['operations', 'deploy', 'observability', 'scaling'] },
  { title: 'About', has: [] },
];
const partOf = (name: string) =>
  PARTS.find(({ has }) => has.some((one) => (one.endsWith('/') ? name.startsWith(one) : name === one))) ?? PARTS.at(-1);

const entry = (path: string, title: string, here: string): string =>
  `<li><a class="entry" href="${path}"${path === here ? ' aria-current="page"' : ''}>${inHtml(title)}</a></li>`;

function menu(all: readonly Guide[], here: string): string {
  const references = REFERENCES.map(({ path, title }) => entry(path, title, here)).join('');
  const parts = PARTS.map((part) => {
    const guides = all.filter(({ name }) => partOf(name) === part);
    if (guides.length === 0) return '';
    const entries = guides.map(({ name, title }) => entry(`/docs/${name}`, title, here)).join('');
    return `<p class="part">${part.title}</p><ul role="list">${entries}</ul>`;
  });
  return `<p class="part">Reference</p><ul role="list">${references}</ul>${parts.join('')}`;
}

export function renderPage(
  guides: readonly Guide[],
  { path, title, body, aside, head = '', wide, query = '' }: Page,
): string {
  const contents = menu(guides, path);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${inHtml(title)} · Agent Broker</title>
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/console/base.css">
<link rel="stylesheet" href="/docs/static/docs.css">
${head}</head>
<body>
<a class="skip" href="#content">To the text</a>
<header class="bar">
<a class="brand" href="/docs"><img src="/console/icon.svg" alt="" width="22" height="22"> Agent Broker <span class="quiet">docs</span></a>
<form role="search" action="/docs/search"><input type="search" name="q" value="${inHtml(query)}" aria-label="Search the documentation" placeholder="Search" maxlength="200"></form>
<nav aria-label="Elsewhere"><a href="/v1/openapi.json">OpenAPI</a> <a href="/console">Console</a></nav>
</header>
<div class="frame"${wide ? ' data-wide' : ''}>
<details class="menu-small"><summary>Contents</summary><nav aria-label="Contents">${contents}</nav></details>
<nav class="menu" aria-label="Contents">${contents}</nav>
<main id="content" tabindex="-1">
${body}
</main>
${aside ? `<aside>${aside}</aside>` : ''}
</div>
</body>
</html>
`;
}
