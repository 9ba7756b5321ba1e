/** Rewrites URLs in the headers of an answer: those of the platform to /proxy. In `Location` and `Link`, others lose their query and fragment. */
import { isBelow } from '../egress/redirect.ts';

/**
 * `platform`: its base URL. `proxyUrl`: the /proxy URL that replaces it, without a trailing slash. `asked`: the platform URL of this answer.
 */
export type Place = { platform: URL; proxyUrl: string; asked: URL };

/** Returns the header value for the client; undefined when it is dropped. Other headers are unchanged. */
export function rewriteLinks(name: string, value: string, place: Place): string | undefined {
  if (name === 'location' || name === 'content-location') return rewriteOne(value, place);
  if (name === 'link') return rewriteLinkHeader(value, place);
  return isOfPlatform(value, place) ? rewriteOne(value, place) : value;
}

/** Whether a header of another name is a URL of the platform to which its clients send their key: `X-Goog-Upload-URL`, `Operation-Location`. */
function isOfPlatform(value: string, { platform }: Place): boolean {
  const url = /^https?:\/\/\S+$/i.test(value) ? URL.parse(value) : null;
  return url !== null && isBelow(url, platform);
}

/** RFC 8288 section 3.3. */
const RELATION = /;\s*rel\s*=\s*(?:"((?:[^"\\]|\\.)*)|([^;]*))/gi;
const LOADED = /\b(?:preload|prefetch|preconnect|dns-prefetch|modulepreload|stylesheet)\b/i;
const isLoaded = (relation: string): boolean => LOADED.test(relation.replaceAll(/\\(.)/g, '$1'));

/** RFC 8288. Links that a browser would load by itself are dropped. */
function rewriteLinkHeader(value: string, place: Place): string | undefined {
  const links = value.match(/<[^<>]*>[^<]*/g) ?? [];
  const kept = links
    .map((link) => link.replace(/,\s*$/, ''))
    .filter((link) => !Array.from(link.matchAll(RELATION), ([, quoted, plain]) => quoted ?? plain ?? '').some(isLoaded))
    .map((link) => link.replace(/^<([^>]*)>/, (_, address: string) => `<${rewriteOne(address, place)}>`));
  return kept.length === 0 ? undefined : kept.join(', ');
}

/**
 * Rewrites one URL. A relative URL belongs to the platform, resolved against the requested URL (RFC 9110 section 10.2.2, RFC 8288
 * section 3.1), as does one of its origin below its base path. A signed URL of another host is a credential of the platform, and a
 * fragment may be one (RFC 6749 section 4.2.2): other hosts' URLs lose query and fragment.
 */
function rewriteOne(address: string, { platform, proxyUrl, asked }: Place): string {
  const url = URL.parse(address, asked.href);
  if (url === null) return '';
  if (isBelow(url, platform))
    return `${proxyUrl}${url.pathname.slice(platform.pathname.replace(/\/+$/, '').length)}${url.search}${url.hash}`;
  url.search = '';
  url.hash = '';
  url.username = '';
  url.password = '';
  return url.href;
}
