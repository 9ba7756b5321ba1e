import { mintToken } from '../crypto/one-time-token.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import { putOneTimeToken } from '../store/one-time-tokens.ts';
import type { AgentTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';

/** A bootstrap token lives for a day. */
const BOOTSTRAP_MS = 24 * 3_600_000;

/** Makes the one-time token with which an agent brings its own key. Only its hash is stored: it is to be shown once. */
export async function mintBootstrapToken(
  db: Db,
  agent: Pick<AgentTable, 'organisation_id' | 'id'>,
  now: Instant,
  { rotates = false }: { rotates?: boolean } = {},
): Promise<{ token: Secret; expiresAt: Instant }> {
  const { token, hash } = mintToken('bootstrap');
  const expiresAt = now + BOOTSTRAP_MS;
  await putOneTimeToken(db, {
    organisation_id: agent.organisation_id,
    token_hash: hash,
    kind: 'bootstrap',
    subject: agent.id,
    created_at: now,
    expires_at: expiresAt,
    rotates: rotates ? 1 : 0,
  });
  return { token, expiresAt };
}
