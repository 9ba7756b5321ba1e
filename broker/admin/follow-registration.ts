import { statusAt } from '../audit/approval-state.ts';
import type { ApprovalChanges } from '../audit/changes.ts';
import type { Uses } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { findRegistrationByToken } from '../store/registrations.ts';
import type { RegistrationTable } from '../store/tables/registrations.ts';

/** How often the store is asked though nothing was heard: a missed notice costs no more than this. */
const LOOK_MS = 15_000;

type Followed = Pick<RegistrationTable, 'id' | 'token_hash'>;
/**
 * As it is at the moment of telling. `expires_at`: until when it can be decided; once it is approved, until when the key can be collected, null
 * when none waits to be.
 */
export type RegistrationNews = Pick<RegistrationTable, 'status' | 'agent_id'> & { expires_at: Instant | null };

/**
 * Tells what is and becomes of a registration, perhaps several times the same, until nothing more can become of it, or it is
 * forgotten. Answers what ends that early; `over` is called at the end in any case.
 */
export function followRegistration(
  { broker, changes }: Uses<'clock' | 'log' | 'store'> & { changes: ApprovalChanges },
  { id, token_hash }: Followed,
  tell: (news: RegistrationNews) => void,
  over: () => void,
): () => void {
  const watch = changes.watch(id);
  const follow = async (): Promise<void> => {
    while (!watch.over()) {
      const found = await findRegistrationByToken(broker.store.db, token_hash);
      if (!found || watch.over()) break;
      const now = broker.clock();
      const status = statusAt(found, now);
      const { agent_id, expires_at, private_key, claim_until } = found;
      const keyUntil = private_key === null ? null : claim_until;
      tell({ status, agent_id, expires_at: status === 'approved' ? keyUntil : expires_at });
      if (status !== 'pending') break;
      await watch.news(Math.min(LOOK_MS, Math.max(1, found.expires_at - now)));
    }
  };
  void follow()
    // The reader comes again by itself, and finds what it missed.
    .catch((error) => broker.log.warn({ err: error }, 'a registration could not be followed'))
    .finally(() => {
      watch.end();
      over();
    });
  return watch.end;
}
