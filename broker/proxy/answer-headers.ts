/** Which headers of a platform's answer come back, and what is added, so that nothing of it can act on the console's origin. */
import { rewriteLinks } from './links.ts';

/** What could act on the origin that a browser takes the answer to be of, or on what lies between; the rest of the sort is below. */
const TAKEN_OUT = new Set(
  `alt-svc clear-site-data content-security-policy content-security-policy-report-only critical-ch
  cross-origin-embedder-policy cross-origin-opener-policy cross-origin-resource-policy nel origin-agent-cluster p3p
  permissions-policy proxy-authenticate refresh report-to reporting-endpoints service-worker-allowed set-cookie set-cookie2
  sourcemap strict-transport-security supports-loading-mode timing-allow-origin www-authenticate x-frame-options
  x-sourcemap`.split(/\s+/),
);
const TAKEN_OUT_PREFIXES = ['access-control-', 'x-svc-', 'sec-', 'accept-ch', 'expect-ct'];

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
  place: { platform: URL; door: string },
): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (TAKEN_OUT.has(name) || TAKEN_OUT_PREFIXES.some((prefix) => name.startsWith(prefix))) continue;
    const values = [value].flat().flatMap((one) => rewriteLinks(name, one, place) ?? []);
    if (values.length > 0) kept[name] = Array.isArray(value) ? values : (values[0] ?? '');
  }
  return { ...kept, ...SANDBOX };
}
