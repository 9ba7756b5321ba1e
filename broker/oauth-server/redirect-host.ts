/** Describes where a code is sent, for display: a site's host, or an application's private scheme. */
export function redirectHost(uri: string): string {
  const url = URL.parse(uri);
  if (url === null) return '';
  return url.protocol === 'https:'
    ? url.host
    : url.protocol === 'http:'
      ? url.hostname
      : `${url.protocol}//${url.host}`;
}
