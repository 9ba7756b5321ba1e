/** Revokes tokens that people obtained in consents but neither kept nor discarded: they are treated as discarded. */
import type { Instant } from '../../policy/facts.ts';
import { purgeObtainedTokens } from '../../store/obtained-tokens.ts';
import { revokePersonTokens } from '../people/person-tokens.ts';
import type { Connecting } from './connections.ts';

/** Longer than a consent can be used. */
const UNDECIDED_MS = 3600_000;

/** Deletes and revokes the tokens; failures to revoke are logged, and not retried. */
export async function revokeUndecidedTokens(services: Connecting, now: Instant): Promise<void> {
  const unkept = await purgeObtainedTokens(services.broker.store.db, now - UNDECIDED_MS);
  const perOrganisation = Map.groupBy(unkept, ({ organisation_id: id }) => id);
  await Promise.all([...perOrganisation.values()].map((rows) => revokePersonTokens(services, rows)));
}
