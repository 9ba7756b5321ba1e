/** Counts refused bearers of agents by address: beyond a limit, further ones are refused without checking key or store. */

import { claimedWorkload } from '../auth/authenticate-workload.ts';
import { kindOf } from '../auth/bearer.ts';
import { claimsOf } from '../auth/claimed.ts';
import type { AgentPrincipal, AuthRefusal } from '../auth/principal.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { Refusal } from './errors.ts';
import type { Limit, RateLimits } from './rate-limits.ts';

const LIMIT: Limit = { name: 'refused-bearers', perMinute: 300, per: 'address' };
const CACHE_SIZE = 10_000;

export type RefusedBearers = {
  /**
   * Runs `authenticate` for a bearer. Throws Refusal (429) instead when too many from this address were refused in this minute, unless the bearer
   * names an agent that was accepted from there, or a child of one, or is a static key that was: one broken or hostile program must not stop its
   * neighbours.
   */
  check(
    token: string,
    source: string,
    authenticate: () => Promise<AgentPrincipal | AuthRefusal>,
  ): Promise<AgentPrincipal | AuthRefusal>;
};

export function countRefusedBearers(limits: RateLimits, baseUrl: string): RefusedBearers {
  /** Addresses with too many refusals, and until when they are blocked, by performance.now(). */
  const spent = recentlyUsed<number>(CACHE_SIZE);
  const accepted = recentlyUsed<true>(CACHE_SIZE);
  return {
    check: async (token, source, authenticate) => {
      const left = spent.size > 0 ? (spent.get(source) ?? 0) - performance.now() : 0;
      if (left > 0 && !claimedBy(token, baseUrl).some((claim) => accepted.get(nameOf(source, claim))))
        throw new Refusal(
          'rate_limited',
          'Too many failed authentications from this address in the last minute. Fix the tokens, then retry.',
          { headers: { 'Retry-After': String(Math.ceil(left / 1000)) } },
        );
      const who = await authenticate();
      if (who.kind === 'agent') {
        const name = nameOf(source, who.staticKey ? sha256Hex(token) : who.agent.agent_id);
        if (!accepted.get(name)) accepted.set(name, true);
      }
      // An expired token is usually due to an honest client's clock, and proves that it has the key.
      else if (who.code !== 'token_expired') {
        const { allowed, retryAfterSeconds } = await limits.take(LIMIT, source);
        if (!allowed) spent.set(source, performance.now() + retryAfterSeconds * 1000);
      }
      return who;
    },
  };
}

const nameOf = (source: string, claim: string): string => `${source} ${claim}`;

/** Returns the agent that a token names, and its parent; for a static key its hash. Unverified: used only to look up earlier acceptances. */
function claimedBy(token: string, baseUrl: string): string[] {
  if (kindOf(token) === 'static_key') return [sha256Hex(token)];
  const { agent_id, parent_agent_id } = claimsOf(token);
  return [agent_id, parent_agent_id, claimedWorkload(baseUrl, token)].filter((claim) => typeof claim === 'string');
}
