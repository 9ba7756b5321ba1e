/** Endpoints of calls that are services of git: its own door reads which refs a push writes, a call does not. */

const SERVICE = /\/(?:info\/refs|git-(?:upload-pack|receive-pack|upload-archive))$|\.git\//i;

/**
 * Whether a call would reach a service of git: by the paths of the broker's own git door, or below the address that repositories are
 * cloned from, where that is also below the address of the API.
 *
 * @param path of the endpoint, in normal form
 */
export function isGitService(
  { base_url: baseUrl, git_base_url: gitUrl }: { base_url: string; git_base_url?: string | undefined },
  path: string,
): boolean {
  if (gitUrl === undefined) return false;
  // As the most lenient server reads it: escaped slashes, parameters of segments and a slash at the end.
  const plain = path
    .replaceAll(/%2f/gi, '/')
    .replaceAll(/;[^/]*/g, '')
    .replace(/\/+$/, '');
  if (!SERVICE.test(plain)) return false;
  if (/^\/git\//i.test(plain)) return true;
  // GitHub Enterprise Server has its API at /api/v3 of the same host: there this is a file that is called so.
  const isApart = !isBelow(gitUrl, baseUrl) && plain.startsWith('/repos/');
  return !isApart && isBelow(`${trimmed(baseUrl)}${plain}`, gitUrl);
}

const trimmed = (url: string): string => url.replace(/\/+$/, '');

function isBelow(url: string, base: string): boolean {
  const [inner, outer] = [URL.parse(url), URL.parse(base)];
  if (!inner || !outer || inner.origin !== outer.origin) return false;
  return `${inner.pathname}/`.startsWith(`${trimmed(outer.pathname)}/`);
}
