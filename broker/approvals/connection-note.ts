/** What has become of a held call's connection since the call was held, for the person who decides. */

import { statusAt } from '../audit/approval-state.ts';
import { shownFlags } from '../audit/audit-flags.ts';
import type { Uses } from '../broker.ts';
import type { FactsLoader } from '../facts/facts.ts';
import type { Instant } from '../policy/facts.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { HeldCall } from '../store/held-calls.ts';
import { listPersonTokens } from '../store/people.ts';

const NOT_MADE = 'an approved call is not made';

const momentText = (at: Instant): string => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/**
 * Returns a sentence that says that an approval would now have another effect than when the call was held, because its connection, or the token of the
 * person for whom it is made, was removed, replaced or refused; null when nothing is known to have changed, and for a call that is not pending. It names the connection by its label, which is an owner's
 * text. A replay compares the connection itself (`connection_changed`).
 */
export async function connectionNote(
  services: Uses<'clock' | 'store'> & { facts: FactsReader; loadFacts: FactsLoader },
  held: HeldCall,
): Promise<string | null> {
  const now = services.broker.clock();
  const { connection_id: id, connection_label: label } = held;
  if (id === null || statusAt(held, now) !== 'pending') return null;
  if (label === null) return `The connection of this call was removed since it was held: ${NOT_MADE}.`;
  const rows = await services.facts(held.agent_public_id, held.platform_id, '');
  const { connections, platform } = await services.loadFacts(rows, now);
  const used = [...connections.values()];
  const current = used.find((one) => one.id === id);
  // Without any grant the call is refused for that reason, which is no matter of its connection.
  if (!current)
    return used.length === 0
      ? null
      : `The agent has another connection now than “${label}”, for which this call was held: ${NOT_MADE}.`;
  // Each person has an account of their own there: the credential of the connection is not used.
  if (platform?.manifest.per_person?.enabled) return await tokenNote(services, held, id);
  if (current.credential === null)
    return `The connection “${label}” is not connected any more: ${NOT_MADE}, unless it is connected again before.`;
  if (current.status === 'reauth_needed')
    return `The platform refuses the credential of the connection “${label}”: connect it again before you approve, or the call will probably fail.`;
  const replacedAt = held.connection_replaced_at;
  return replacedAt !== null && replacedAt > held.created_at
    ? `The credential of the connection “${label}” was replaced on ${momentText(replacedAt)}, after this call was held: it may act for another account now.`
    : null;
}

/** What has become of the token of the person for whom the call is made. */
async function tokenNote(
  { broker: { store } }: Uses<'store'>,
  { organisation_id, platform_id, created_at, held_flags: flags }: HeldCall,
  connectionId: string,
): Promise<string | null> {
  const personId = shownFlags({ flags }).caller?.person_id;
  if (personId === undefined) return null;
  const place = { organisation_id, platform_id, connection_id: connectionId, person_id: personId };
  const kept = (await listPersonTokens(store.db, place)).find(({ standing }) => standing === 'kept');
  if (kept === undefined)
    return `The person for whom this call is made has no usable token any more: ${NOT_MADE}, unless they consent again before.`;
  if (kept.status === 'reauth_needed')
    return 'The platform refuses the token of the person for whom this call is made: they have to consent again before you approve, or the call will probably fail.';
  return kept.created_at > created_at
    ? `The person for whom this call is made gave another token on ${momentText(kept.created_at)}, after it was held: it may act for another account now.`
    : null;
}
