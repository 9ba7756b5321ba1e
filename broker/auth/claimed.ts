/** Reads unverified parts of a compact JWS, only to select the keys that it has to be verified with. */

/** Returns the claims (part 1) or the header (part 0); empty when the part is malformed. */
export function partOf(token: string, part: 0 | 1): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(Buffer.from(token.split('.', 2)[part] ?? '', 'base64url').toString('utf8'));
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export const claimsOf = (token: string): Record<string, unknown> => partOf(token, 1);

/**
 * Whether a token claims to be issued by another party than this broker or an agent (`iss`, and no `agent_id`), such as the platform on which a workload
 * or pipeline runs. Unverified; selects only what a refusal says.
 */
export function isIssuedElsewhere(baseUrl: string, token: string): boolean {
  const { iss, agent_id: agentId } = claimsOf(token);
  return typeof iss === 'string' && iss !== baseUrl && agentId === undefined;
}
