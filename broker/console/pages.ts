/** The owner's web pages: static files, served with a Content-Security-Policy that allows nothing inline and no framing. */
import { readFileSync } from 'node:fs';
import type { Reply } from '../http/reply.ts';

export type Page = { path: string; file: string; type: string; summary: string };

export const PAGES: readonly Page[] = [
  { path: '/console', file: 'console.html', type: 'text/html; charset=utf-8', summary: 'The console.' },
  {
    path: '/console/sign-in',
    file: 'sign-in.html',
    type: 'text/html; charset=utf-8',
    summary: 'Where a sign-in link leads.',
  },
  {
    path: '/console/console.js',
    file: 'console.js',
    type: 'text/javascript; charset=utf-8',
    summary: 'Script of the console.',
  },
  {
    path: '/console/sign-in.js',
    file: 'sign-in.js',
    type: 'text/javascript; charset=utf-8',
    summary: 'Script of the sign-in page.',
  },
  {
    path: '/console/console.css',
    file: 'console.css',
    type: 'text/css; charset=utf-8',
    summary: 'Style of the console.',
  },
];

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Reads a page once and answers it from then on. Throws when the file is not part of this build. */
export function pageReply(page: Page): () => Reply {
  const body = readFileSync(new URL(`./static/${page.file}`, import.meta.url));
  return () => ({ status: 200, type: page.type, headers: { ...HEADERS }, body });
}
