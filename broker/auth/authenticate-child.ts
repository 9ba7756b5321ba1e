/** Who presents the token of a child identity (specification, Authentication 4; Child identity). */

import type { Broker } from '../broker.ts';
import { present } from '../policy/present.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { type ChildClaims, childTokenReader } from './child-token.ts';
import type { AgentPrincipal, AskedPlatform, AuthRefusal } from './principal.ts';
import type { CountStrike } from './strikes.ts';

/** Puts on record that a child's lifetime is over. Never rejects: whoever asks is refused, recorded or not. */
export type EndLifetime = (child: FactsRow) => Promise<void>;

/**
 * For so long a child whose lifetime is over is still told so, as any agent that is stopped for good, and can read what became
 * of its last calls. After that its token says nothing any more.
 */
const REMEMBERED_MS = 24 * 3600 * 1000;

type AuthenticateChild = (
  token: string,
  platform: AskedPlatform,
  source: string,
) => Promise<AgentPrincipal | AuthRefusal>;

/**
 * One read, as for any agent; its answer has the parent in it. A wrong signature counts as one only when the rest of the
 * token is the child's own, which nobody can guess: a stranger cannot halt a child. A child that did not call since its end is
 * put on record as ended here, before it is told.
 */
export function childAuthenticator(
  broker: Broker,
  readFacts: FactsReader,
  countStrike: CountStrike,
  endLifetime: EndLifetime,
): AuthenticateChild {
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
      return { kind: 'refused', code: 'invalid_token', detail: 'There is no such child identity any more.' };
    const now = broker.clock();
    if (claims.expiresAt * 1000 + REMEMBERED_MS <= now)
      return { kind: 'refused', code: 'token_expired', detail: 'The lifetime of this child identity is long over.' };
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
