/** Which headers of a platform's answer come back, and what is added, so that nothing of it can act on the console's origin. */
import { type Place, rewriteLinks } from './links.ts';

/** What could act on the origin that a browser takes the answer to be of, or on what lies between; more by prefix below. */
const TAKEN_OUT = new Set(
  `alt-svc clear-site-data content-security-policy content-security-policy-report-only critical-ch
  cross-origin-embedder-policy cross-origin-opener-policy cross-origin-resource-policy nel origin-agent-cluster p3p
  permissions-policy proxy-authenticate refresh report-to reporting-endpoints service-worker-allowed set-cookie set-cookie2
  sourcemap strict-transport-security supports-loading-mode timing-allow-origin www-authenticate x-frame-options
  x-reproxy-url x-sourcemap`.split(/\s+/),
);
/**
 * The last ones are orders of a server to the reverse proxy or the shared cache before it, which stands before the broker here: another
 * address or a file to answer with, and how long to keep an answer (nginx, Apache, lighttpd, LiteSpeed, Envoy; RFC 9213, Edge Architecture).
 */
const TAKEN_OUT_PREFIXES = `access-control- x-svc- sec- accept-ch expect-ct
  x-accel- x-sendfile x-lighttpd- x-litespeed- x-envoy- surrogate- cdn- cloudflare-cdn- edge-`.split(/\s+/);

/** By which rules an answer is masked, for its client. */
export const maskedHeader = (rules: readonly string[] = []): Record<string, string> =>
  rules.length > 0 ? { 'X-Svc-Masked': rules.map(encodeURIComponent).join(', ') } : {};

/** On every answer, so that nothing of it can act on the console's origin. */
export const SANDBOX: Readonly<Record<string, string>> = {
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/**
 * The headers of an answer as a client gets them. `place`: where the platform's own addresses lead here.
 *
 * @param headers names in lower case, without those of one hop and any that held the credential
 */
export function answeredHeaders(
  headers: Readonly<Record<string, string | string[]>>,
  place: Place,
): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (TAKEN_OUT.has(name) || TAKEN_OUT_PREFIXES.some((prefix) => name.startsWith(prefix))) continue;
    const values = [value].flat().flatMap((one) => rewriteLinks(name, one, place) ?? []);
    if (values.length > 0) kept[name] = Array.isArray(value) ? values : (values[0] ?? '');
  }
  return { ...kept, 'cache-control': ofOneClient(headers['cache-control']), ...SANDBOX };
}

/**
 * What the platform allows caches, for the client's own alone. A shared cache before the broker would answer strangers with what an agent
 * was given: it need not know that the agent's token may stand in another header than Authorization (RFC 9111 §3.5, §5.2.2.7).
 */
function ofOneClient(value: string | string[] | undefined): string {
  const directives = [value ?? []].flat().join(',').match(DIRECTIVES) ?? [];
  if (directives.length === 0) return 'no-store';
  // Beside `no-store` as well: a cache that knows `must-understand` may store in spite of it (§5.2.2.3).
  return ['private', ...directives.filter((one) => !FOR_SHARED_CACHES.test(one))].join(', ');
}
const DIRECTIVES = /[^\s,"=]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,"]*))?/gs;
const FOR_SHARED_CACHES = /^(?:public|private|s-maxage)(?:\s*=|$)/i;
