/** Authenticates static keys: bearers of an agent for one connection, for clients that cannot sign (docs/unmodified.md, Static keys). */
import type { Broker } from '../broker.ts';
import { hashToken } from '../crypto/one-time-token.ts';
import type { NotedUses } from '../runtime/noted-uses.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { staticKeyReader } from '../store/static-keys.ts';
import { type AgentPrincipal, type AuthRefusal, refused } from './principal.ts';

/** `(key, platform, source address)` → the agent with the facts about that platform, and the key's id; or a refusal. */
export type AuthenticateStaticKey = (
  key: string,
  platform: string,
  source: string,
) => Promise<AgentPrincipal | AuthRefusal>;

/** The refusal of a static key at every entry point other than the raw one. */
export const STATIC_KEY_ELSEWHERE: AuthRefusal = {
  kind: 'refused',
  code: 'invalid_token',
  detail:
    'A static key is valid only below /proxy/<its connection>/. Everything else requires a token signed by the agent.',
};

/**
 * Returns the authenticator. The key's row is read for each request, so that a revoked or expired key is refused at the next request, on every
 * replica. Whether the agent is halted is decided afterwards, as for its signed tokens. `uses`: records that a key was used.
 */
export function staticKeyAuthenticator(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  facts: FactsReader,
  uses: NotedUses,
): AuthenticateStaticKey {
  const find = staticKeyReader(store);
  return async (bearer, platform, source) => {
    const hash = hashToken(bearer, 'static_key');
    const key = hash === undefined ? undefined : await find(hash);
    if (!key) return refused('invalid_token', 'This static key is unknown. An owner of the agent can issue another.');
    if (key.ended_at !== null)
      return refused('invalid_token', 'This static key was revoked. An owner of the agent can issue another.');
    if (key.expires_at <= clock())
      return refused('token_expired', 'This static key has expired. An owner of the agent can issue another.');
    const rows = await facts(key.agent_public_id, platform, source);
    const [agent] = rows;
    if (!agent || agent.status === 'deleted')
      return refused('invalid_token', 'The agent of this static key no longer exists.');
    uses.note(key.id);
    const staticKey = { id: key.id, connectionId: key.connection_id, connectionLabel: key.connection_label };
    return { kind: 'agent', rows, agent, source, sessionId: null, staticKey };
  };
}
