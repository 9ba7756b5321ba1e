/** Finds the address at which a broker serves `/git` and `/proxy`: they may have a host of their own (PROXY_HOST). */

const TIMEOUT_MS = 3_000;

/**
 * Returns the base URL of both, without a trailing slash, as the broker at `url` reports it; `url` itself where they have no host of their
 * own, and where the broker does not answer.
 *
 * @param url address of the broker, without a trailing slash
 */
export async function proxyBaseUrl(url: string): Promise<string> {
  try {
    const answer = await fetch(`${url}/agent-manifest.json`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const { base_url: base, proxy_base_url: moved } = (await answer.json()) as Record<string, unknown>;
    if (typeof moved !== 'string' || moved === base) return url;
    // An https address must not be replaced by an http one.
    const isFit = /^https?:\/\/[^/?#@]+$/.test(moved) && (moved.startsWith('https:') || url.startsWith('http:'));
    return isFit ? moved : url;
  } catch {
    return url;
  }
}
