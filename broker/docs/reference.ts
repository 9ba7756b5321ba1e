/** The API references: Swagger UI, served by the broker, without requests to other hosts. */
import { existsSync, readFileSync } from 'node:fs';
import type { Guide } from '../http/guides.ts';
import type { Served } from '../http/pages/page.ts';
import { renderPage } from './layout.ts';

/** The served files of swagger-ui-dist, by name. */
const FILES = [
  { name: 'swagger-ui.js', file: 'swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8' },
  { name: 'swagger-ui.css', file: 'swagger-ui.css', type: 'text/css; charset=utf-8' },
] as const;

/**
 * Finds a file of swagger-ui-dist: the build copies it beside the compiled files, a checkout has it from npm. It is not a
 * dependency of the package, because its own dependencies report installations to its maker.
 */
function find(file: string): URL | undefined {
  const copied = new URL(`./vendor/${file}`, import.meta.url);
  if (existsSync(copied)) return copied;
  try {
    return new URL(import.meta.resolve(`swagger-ui-dist/${file}`));
  } catch {
    return undefined;
  }
}

/** Returns the served files; empty when this installation lacks them. They name source maps, which are not served. */
export function referenceParts(): Served[] {
  const found = FILES.map(({ name, file, type }) => ({ name, type, url: find(file) }));
  return found.flatMap(({ name, type, url }) => {
    if (!url || !existsSync(url)) return [];
    const read = () => Buffer.from(readFileSync(url, 'utf8').replace(/^(\/\/|\/\*)# sourceMappingURL=.*$/m, ''));
    return [{ path: `/docs/static/${name}`, summary: 'Served of the reference.', type, read }];
  });
}

const REFERENCES = [
  { path: '/docs/reference', title: 'Agent API', document: '/v1/openapi.json' },
  { path: '/docs/owner-reference', title: 'Owner API', document: '/owner/openapi.json' },
] as const;

/** Returns the pages. `whole`: whether the renderer is installed; without it they link to the documents themselves. */
export function referencePages(whole: boolean, guides: readonly Guide[]): { path: string; html: string }[] {
  return REFERENCES.map(({ path, title, document }) => {
    const head = `<link rel="stylesheet" href="/docs/static/swagger-ui.css">
<link rel="stylesheet" href="/docs/static/reference.css">
<script src="/docs/static/swagger-ui.js" defer></script>
<script src="/docs/static/reference.js" type="module"></script>
`;
    const missing = `<p class="notice">This install came without the reference. <a href="${document}">The OpenAPI document</a> opens in any tool.</p>`;
    const shown = `<div id="reference" data-document="${document}"><p class="quiet">Loading <a href="${document}">the document</a> …</p></div>`;
    return {
      path,
      html: renderPage(guides, {
        path,
        title,
        wide: true,
        body: `<h1 class="unseen">${title}</h1>${whole ? shown : missing}`,
        ...(whole && { head }),
      }),
    };
  });
}
