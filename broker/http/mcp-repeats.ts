/** Which calls of an MCP client are the same call: in the store, because the next request may come to another replica. */
import { type PersonKey, textKey } from '../../mcp/tools/person-key.ts';
import { newRepeat, type Repeats } from '../../mcp/tools/repeats.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Services } from '../services.ts';
import { beginMcpRepeat, endMcpRepeat, findMcpRepeat, holdMcpRepeat } from '../store/mcp-repeats.ts';
import type { McpRepeatTable } from '../store/schema.ts';
import { CallerIdentity } from '../wire/action.ts';

/** As long as an Idempotency-Key is good for. */
const KEPT_MS = 24 * 3600 * 1000;
/** A call that is held is found for longer than any organisation lets it wait, so that what became of it is found, too. */
const HELD_KEPT_MS = 30 * KEPT_MS;

/** Those of one agent. */
export function storedRepeats({ broker }: Services, { agent }: AgentPrincipal): Repeats {
  const { db } = broker.store;
  const place = { organisation_id: agent.organisation_id, agent_id: agent.id };
  return {
    begin: async (hash, reason) => {
      const now = broker.clock();
      const { key } = newRepeat(reason);
      const expires_at = now + KEPT_MS;
      const asked = { ...place, hash, key, reason: reason ?? null, approval_id: null, expires_at };
      const begun = await beginMcpRepeat(db, asked, now);
      return { ...shown(begun), isNew: begun.key === key, turn: begun.expires_at };
    },
    find: async (hash) => {
      const found = await findMcpRepeat(db, { ...place, hash }, broker.clock());
      return found && shown(found);
    },
    held: (hash, key, approval_id) =>
      holdMcpRepeat(db, { ...place, hash, key }, { approval_id, expires_at: broker.clock() + HELD_KEPT_MS }),
    end: (hash, key) => endMcpRepeat(db, { ...place, hash, key }),
    endApproval: (approval_id) => endMcpRepeat(db, { ...place, approval_id }),
    // Whoever begins it again moves its end.
    drop: (hash, { key, turn }) => endMcpRepeat(db, { ...place, hash, key, expires_at: turn }),
  };
}

/** By the hash that the organisation knows the person by, which an assertion has to be verified for. */
export const personKeyOf =
  ({ people }: Services, { agent }: AgentPrincipal): PersonKey =>
  async (caller) => {
    const read = CallerIdentity.safeParse(caller);
    const identified = read.success ? await people.identify(agent.organisation_id, read.data) : undefined;
    return identified?.ok ? identified.who.hash : textKey(JSON.stringify(caller));
  };

const shown = ({ key, reason, approval_id }: McpRepeatTable) => ({
  key,
  reason: reason ?? undefined,
  approvalId: approval_id ?? undefined,
});
