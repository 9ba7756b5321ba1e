/** Follows links in a broker's documents and checks that their targets exist, anchors included. */
import { expect } from 'vitest';
import { type Answer, send } from './agent.ts';

/** Returns every absolute address in a JSON value, and every value that is a path. */
export function addressesIn(value: unknown): string[] {
  if (typeof value === 'string') return /^(https?:\/\/|\/)\S+$/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(addressesIn);
}

/** Returns every `href` and `src` of a page. */
export const addressesOfPage = (html: string): string[] =>
  [...html.matchAll(/\b(?:href|src)="([^"]*)"/g)].map(([, address = '']) => address.replaceAll('&#38;', '&'));

/** Returns the link targets of a Markdown text. */
export const addressesOfText = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, address = '']) => address);

const ids = (html: string): Set<string> => new Set([...html.matchAll(/\bid="([^"]*)"/g)].map(([, id = '']) => id));

/** Returns a checker for one broker, which loads each page once. */
export function makeReader(baseUrl: string): { resolves(address: string, from?: string): Promise<void> } {
  const read = new Map<string, Promise<Answer>>();
  const anchors = new Map<string, Set<string>>();
  const get = (url: string) => {
    const known = read.get(url) ?? send(url, {});
    read.set(url, known);
    return known;
  };
  const anchorsOf = (url: string, html: string) => {
    const known = anchors.get(url) ?? ids(html);
    anchors.set(url, known);
    return known;
  };
  return {
    /** An address that accepts only another method exists, too. No requests are sent to other hosts. */
    resolves: async (address, from = '/') => {
      const url = new URL(address, new URL(from, baseUrl));
      if (url.origin !== baseUrl) return;
      const anchor = decodeURIComponent(url.hash.slice(1));
      url.hash = '';
      if (/%7B\w+%7D/.test(url.href)) {
        // An address with parameters: the answer to an unsupported method shows whether it exists.
        const { status } = await send(url.href.replaceAll(/%7B\w+%7D/g, 'x'), { method: 'PATCH' });
        return expect(status, `${from} → ${address}`).toBe(405);
      }
      const answer = await get(url.href);
      expect([200, 302, 304, 400, 401, 405, 503], `${from} → ${address}: ${answer.status}`).toContain(answer.status);
      // The API reference has its own anchors: #/tag/operation.
      if (anchor !== '' && !anchor.startsWith('/'))
        expect(anchorsOf(url.href, answer.text).has(anchor), `${from} → ${address}: no such anchor`).toBe(true);
    },
  };
}
