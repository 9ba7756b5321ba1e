/** Authenticates the token of a child identity (specification, Authentication 4; Child identity). */

import type { Broker } from '../broker.ts';
import { present } from '../runtime/present.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { type ChildClaims, childTokenReader } from './child-token.ts';
import type { AuthenticateAgent } from './principal.ts';
import type { CountStrike } from './strikes.ts';

/** Records that a child has expired. Never rejects: the child's request is refused whether or not recording succeeds. */
export type EndLifetime = (child: FactsRow) => Promise<void>;

/**
 * Grace period in which an expired child gets the specific refusal "expired", as other ended agents do, and can read the results of
 * its last calls. After that its token is unknown.
 */
const RETENTION_MS = 24 * 3600 * 1000;

/**
 * Authenticates with one read, as for any agent; the row includes the parent. A wrong signature counts as a strike only when the rest of
 * the token matches the child's own, which cannot be guessed, so that a stranger cannot halt a child. For a child that expired since its
 * last call, the expiry is recorded here, before the refusal is sent.
 */
export function childAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'keys'>,
  readFacts: FactsReader,
  countStrike: CountStrike,
  endLifetime: EndLifetime,
): AuthenticateAgent {
  const readToken = childTokenReader(broker);
  return async (token, platform, source) => {
    const read = readToken(token);
    if (!read.ok) {
      const { refusal, unproven } = read;
      const [meant] = unproven ? await readFacts(unproven.agentId, '', source) : [];
      if (meant && unproven && isTheirs(meant, unproven)) await countStrike(meant, source);
      return refusal;
    }
    const { claims } = read;
    const platformId = typeof platform === 'string' ? platform : await platform();
    let rows = await readFacts(claims.agentId, platformId, source);
    if (!rows[0] || !isTheirs(rows[0], claims))
      return { kind: 'refused', code: 'invalid_token', detail: 'This child identity no longer exists.' };
    const now = broker.clock();
    if (claims.expiresAt * 1000 + RETENTION_MS <= now)
      return { kind: 'refused', code: 'token_expired', detail: 'This child identity expired more than one day ago.' };
    if (isOverdue(rows[0], now)) {
      await endLifetime(rows[0]);
      rows = await readFacts(claims.agentId, platformId, source);
    }
    return { kind: 'agent', rows, agent: present(rows[0], 'agent'), source, sessionId: null };
  };
}

const isTheirs = (agent: FactsRow, { fingerprint }: ChildClaims): boolean =>
  agent.agent_type === 'child' && agent.key_fingerprint === fingerprint && agent.status !== 'deleted';

const isOverdue = ({ status, expires_at }: FactsRow, now: number): boolean =>
  (status === 'active' || status === 'suspended') && expires_at !== null && expires_at <= now;
