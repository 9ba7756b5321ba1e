/** Deduplicates the calls of an MCP client; in the store, because the retry may reach another replica. */
import type { AgentPrincipal } from '../../auth/principal.ts';
import type { Broker } from '../../broker.ts';
import { beginMcpRepeat, endMcpRepeat, findMcpRepeat, holdMcpRepeat } from '../../store/mcp-repeats.ts';
import type { McpRepeatTable } from '../../store/tables/calls.ts';

/** As long as an Idempotency-Key is kept. */
const RETENTION_MS = 24 * 3600 * 1000;
/** A held call is kept longer than any organisation lets it wait, so that its outcome can be found. */
const HELD_RETENTION_MS = 30 * RETENTION_MS;

/** `key`: the Idempotency-Key under which the call is made. */
type Repeat = { key: string; reason: string | undefined; approvalId: string | undefined };

export type AgentRepeats = {
  /**
   * Begins the call with this hash under `key`, unless it was begun already. `turn`: identifies this beginning; changes when the call is
   * begun again.
   */
  begin(
    hash: string,
    asked: { key: string; reason: string | undefined },
  ): Promise<Repeat & { isNew: boolean; turn: number }>;
  find(hash: string): Promise<Repeat | undefined>;
  /** Stores that the call is held as this approval. */
  held(hash: string, key: string, approvalId: string): Promise<void>;
  end(hash: string, key: string): Promise<void>;
  endApproval(approvalId: string): Promise<void>;
  /** Ends this beginning, unless the call was begun again since. */
  drop(hash: string, began: { key: string; turn: number }): Promise<void>;
};

/** Repeats of one agent. */
export function agentRepeats(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  { agent }: AgentPrincipal,
): AgentRepeats {
  const place = { organisation_id: agent.organisation_id, agent_id: agent.id };
  return {
    begin: async (hash, { key, reason }) => {
      const now = clock();
      const expires_at = now + RETENTION_MS;
      const asked = { ...place, hash, key, reason: reason ?? null, approval_id: null, expires_at };
      const begun = await beginMcpRepeat(db, asked, now);
      return { ...shown(begun), isNew: begun.key === key, turn: begun.expires_at };
    },
    find: async (hash) => {
      const found = await findMcpRepeat(db, { ...place, hash }, clock());
      return found && shown(found);
    },
    held: (hash, key, approval_id) =>
      holdMcpRepeat(db, { ...place, hash, key }, { approval_id, expires_at: clock() + HELD_RETENTION_MS }),
    end: (hash, key) => endMcpRepeat(db, { ...place, hash, key }),
    endApproval: (approval_id) => endMcpRepeat(db, { ...place, approval_id }),
    drop: (hash, { key, turn }) => endMcpRepeat(db, { ...place, hash, key, expires_at: turn }),
  };
}

const shown = ({ key, reason, approval_id }: McpRepeatTable): Repeat => ({
  key,
  reason: reason ?? undefined,
  approvalId: approval_id ?? undefined,
});
