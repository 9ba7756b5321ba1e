/** Whether If-None-Match (RFC 9110 section 13.1.2) names this version. Accepts quoted, unquoted and weak tags, and lists. */
export function matchesEtag(header: string | undefined, version: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((entry) => {
    const tag = entry
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1');
    return tag === version || tag === '*';
  });
}
