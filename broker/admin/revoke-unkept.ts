/** What people obtained in consents and never said anything about: it ends here and at the platform, as if they had said no. */
import type { Instant } from '../policy/facts.ts';
import { purgeObtainedTokens } from '../store/obtained-tokens.ts';
import type { Connecting } from './connections.ts';
import { revokePersonTokens } from './person-tokens.ts';

/** A consent is good for less. */
const UNKEPT_MS = 3600_000;

/** Forgets and revokes them; what a platform does not revoke is said in the log, and is not tried again. */
export async function revokeUnkept(services: Connecting, now: Instant): Promise<void> {
  const unkept = await purgeObtainedTokens(services.broker.store.db, now - UNKEPT_MS);
  const perOrganisation = Map.groupBy(unkept, ({ organisation_id: id }) => id);
  await Promise.all([...perOrganisation.values()].map((rows) => revokePersonTokens(services, rows)));
}
