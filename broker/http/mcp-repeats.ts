/** Which calls of an MCP client are the same call: in the store, because the next request may come to another replica. */
import { newRepeat, type Repeat, type Repeats } from '../../mcp/tools/repeats.ts';
import type { Governor } from '../calls/governor.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import { endMcpRepeat, findMcpRepeat, holdMcpRepeat, putMcpRepeat } from '../store/mcp-repeats.ts';
import type { McpRepeatTable } from '../store/schema.ts';

/** As long as an Idempotency-Key is good for. */
const KEPT_MS = 24 * 3600 * 1000;
/** A call that is held is found for longer than any organisation lets it wait, so that what became of it is found, too. */
const HELD_KEPT_MS = 30 * KEPT_MS;

/** Those of one agent. */
export function storedRepeats({ broker }: Governor, { agent }: AgentPrincipal): Repeats {
  const { db } = broker.store;
  const place = { organisation_id: agent.organisation_id, agent_id: agent.id };
  const find = async (hash: string): Promise<Repeat | undefined> => {
    const found = await findMcpRepeat(db, { ...place, hash }, broker.clock());
    return found && shown(found);
  };
  const begin = async (hash: string, reason: string | undefined): Promise<Repeat> => {
    const now = broker.clock();
    const repeat = newRepeat(reason);
    const row = {
      ...place,
      hash,
      key: repeat.key,
      reason: reason ?? null,
      approval_id: null,
      expires_at: now + KEPT_MS,
    };
    await putMcpRepeat(db, row, now);
    return (await find(hash)) ?? repeat;
  };
  return {
    begin,
    find,
    held: async (hash, approvalId) => {
      // A read has begun without being remembered.
      await begin(hash, undefined);
      await holdMcpRepeat(
        db,
        { ...place, hash },
        { approval_id: approvalId, expires_at: broker.clock() + HELD_KEPT_MS },
      );
    },
    end: (hash) => endMcpRepeat(db, { ...place, hash }),
    endApproval: (approvalId) => endMcpRepeat(db, { ...place, approvalId }),
  };
}

const shown = ({ key, reason, approval_id }: McpRepeatTable): Repeat => ({
  key,
  reason: reason ?? undefined,
  approvalId: approval_id ?? undefined,
});
