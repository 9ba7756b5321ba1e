/** What a compact JWS says before anything of it is verified: only to find out by whose keys it has to be. */

/** Its claims (part 1) or its header (part 0); empty where it has none. */
export function partOf(token: string, part: 0 | 1): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(Buffer.from(token.split('.', 2)[part] ?? '', 'base64url').toString('utf8'));
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export const claimsOf = (token: string): Record<string, unknown> => partOf(token, 1);
