/** `web`: the site where people sign in; `api`: the base URL of the API. Neither ends in a slash. */
export type GitHubSite = { web: string; api: string };

/** Returns the GitHub with this web address; undefined when it is not an address of a GitHub. */
export function gitHubSite(url: string): GitHubSite | undefined {
  const parsed = URL.parse(url);
  const isLoopback = parsed?.protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(parsed.hostname);
  if (!parsed || (parsed.protocol !== 'https:' && !isLoopback) || parsed.pathname !== '/' || parsed.search !== '')
    return undefined;
  const { origin, hostname } = parsed;
  if (hostname === 'github.com') return { web: origin, api: 'https://api.github.com' };
  // GitHub Enterprise Cloud with data residency has its API on a separate host, Enterprise Server under a path.
  return { web: origin, api: hostname.endsWith('.ghe.com') ? `https://api.${hostname}` : `${origin}/api/v3` };
}
