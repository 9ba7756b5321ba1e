/** Where a code goes, in the words by which a person knows the place: a site's host, or an application's own scheme. */
export function redirectHost(uri: string): string {
  const url = URL.parse(uri);
  if (url === null) return '';
  return url.protocol === 'https:'
    ? url.host
    : url.protocol === 'http:'
      ? url.hostname
      : `${url.protocol}//${url.host}`;
}
