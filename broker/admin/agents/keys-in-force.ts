/** Lists the keys of the installation that sign and seal now, and since when. */
import type { Broker } from '../../broker.ts';
import type { Instant } from '../../policy/facts.ts';
import { ownLogKeys } from '../../receipt-log/log-keys.ts';
import { findSecretKeyInForce } from '../../store/secret-keys.ts';

export type KeyInForce = {
  use: 'evidence' | 'log' | 'session' | 'secrets' | 'master';
  kid: string;
  /** Null for the master key: the store has no record of it. */
  since: Instant | null;
};

/** Returns at most one key per use; a key that is created on first use may not exist yet. */
export async function keysInForce({
  store,
  keys,
  vault,
  clock,
}: Pick<Broker, 'clock' | 'store' | 'vault' | 'keys'>): Promise<KeyInForce[]> {
  const now = clock();
  const signing = (use: 'evidence' | 'session'): KeyInForce[] => {
    const key = keys.set(use).entries.find(({ activatesAt, retiredAt }) => activatesAt <= now && retiredAt === null);
    return key ? [{ use, kid: key.kid, since: key.activatesAt }] : [];
  };
  const log = (await ownLogKeys({ store, vault })).find(({ retired_at }) => retired_at === null);
  const secrets = await findSecretKeyInForce(store.db);
  return [
    ...signing('evidence'),
    ...(log ? [{ use: 'log' as const, kid: log.id, since: log.created_at }] : []),
    ...signing('session'),
    ...(secrets ? [{ use: 'secrets' as const, kid: secrets.kid, since: secrets.created_at }] : []),
    { use: 'master', kid: vault.masterKeys().current.id, since: null },
  ];
}
