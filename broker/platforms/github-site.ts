/** `web`: where a person signs in; `api`: where programs ask. Neither ends in a slash. */
export type GitHubSite = { web: string; api: string };

/** The GitHub at this address of its web site; undefined: it is none. */
export function gitHubSite(url: string): GitHubSite | undefined {
  const parsed = URL.parse(url);
  const isLoopback = parsed?.protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(parsed.hostname);
  if (!parsed || (parsed.protocol !== 'https:' && !isLoopback) || parsed.pathname !== '/' || parsed.search !== '')
    return undefined;
  const { origin, hostname } = parsed;
  if (hostname === 'github.com') return { web: origin, api: 'https://api.github.com' };
  // GitHub Enterprise Cloud with data residency has a host of its own for the API, Enterprise Server a path.
  return { web: origin, api: hostname.endsWith('.ghe.com') ? `https://api.${hostname}` : `${origin}/api/v3` };
}
