import { statusAt } from '../../audit/approval-state.ts';
import type { ApprovalChanges } from '../../audit/changes.ts';
import type { Uses } from '../../broker.ts';
import type { Instant } from '../../policy/facts.ts';
import { findRegistrationByToken } from '../../store/registrations.ts';
import type { RegistrationTable } from '../../store/tables/registrations.ts';

/** Polling interval in addition to announcements: a missed announcement delays news by no more than this. */
const POLL_MS = 15_000;

type Followed = Pick<RegistrationTable, 'id' | 'token_hash'>;
/**
 * The state of a registration when it is reported. `expires_at`: the deadline of the decision, also when it has passed; after an approval the deadline
 * for collecting the key, null when no key is left to collect. Null after a rejection, which has no deadline.
 */
export type RegistrationState = Pick<RegistrationTable, 'status' | 'agent_id'> & { expires_at: Instant | null };

/**
 * Calls `tell` with the state of a registration, now and after each change, possibly repeatedly with the same state, until the state is final or the
 * registration is deleted. Returns the function that ends this early; `over` is called at the end in any case.
 */
export function followRegistration(
  { broker, changes }: Uses<'clock' | 'log' | 'store'> & { changes: ApprovalChanges },
  { id, token_hash }: Followed,
  tell: (news: RegistrationState) => void,
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
      const until = { pending: expires_at, approved: keyUntil, rejected: null, expired: expires_at };
      tell({ status, agent_id, expires_at: until[status] });
      if (status !== 'pending') break;
      await watch.news(Math.min(POLL_MS, Math.max(1, found.expires_at - now)));
    }
  };
  void follow()
    // The reader reconnects by itself, and then gets the current state.
    .catch((error) => broker.log.warn({ err: error }, 'the status of a registration could not be followed'))
    .finally(() => {
      watch.end();
      over();
    });
  return watch.end;
}
