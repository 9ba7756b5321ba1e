import { mintToken } from '../crypto/one-time-token.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import { putOneTimeToken } from '../store/one-time-tokens.ts';
import type { Db } from '../store/store.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import type { OneTimeTokenTable } from '../store/tables/registrations.ts';

/** Lifetime of a bootstrap token: a day. */
const BOOTSTRAP_MS = 24 * 3_600_000;

export type BootstrapToken = { token: Secret; expiresAt: Instant };

/** `madeBy`: see `made_by` of OneTimeTokenTable. `rotates`: by default false. */
type MintOptions = { madeBy: string | null; rotates?: boolean };

/** Creates the one-time token with which an agent binds its own key. Only the token's hash is stored, so the token must be shown now. */
export async function mintBootstrapToken(
  db: Db,
  agent: Pick<AgentTable, 'organisation_id' | 'id'>,
  now: Instant,
  options: MintOptions,
): Promise<BootstrapToken> {
  const { row, ...minted } = newBootstrapToken(agent, now, options);
  await putOneTimeToken(db, row);
  return minted;
}

/** Creates a bootstrap token together with its row, which the caller still has to store. */
export function newBootstrapToken(
  agent: Pick<AgentTable, 'organisation_id' | 'id'>,
  now: Instant,
  { madeBy, rotates = false }: MintOptions,
): BootstrapToken & { row: OneTimeTokenTable } {
  const { token, hash } = mintToken('bootstrap');
  const expiresAt = now + BOOTSTRAP_MS;
  const row = {
    organisation_id: agent.organisation_id,
    token_hash: hash,
    kind: 'bootstrap' as const,
    subject: agent.id,
    created_at: now,
    expires_at: expiresAt,
    used_at: null,
    rotates: rotates ? (1 as const) : (0 as const),
    made_by: madeBy,
  };
  return { token, expiresAt, row };
}
