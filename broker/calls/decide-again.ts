/** A call that was allowed and then waited for a token: whether it is allowed still, on the facts of this moment. */
import { isDeepStrictEqual } from 'node:util';
import type { Uses } from '../broker.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { withoutBreakers } from '../policy/breaker.ts';
import { decide } from '../policy/decide.ts';
import type { Ask, StandingApproval } from '../policy/facts.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { standsFor } from '../store/standing-approvals.ts';
import { type Call, decidedBy } from './call.ts';
import type { Forwarded } from './forwarded.ts';
import { reloadPrincipal } from './reload.ts';

/**
 * Undefined: it may be sent. `isApproved`: a person approved it, which stands in for a hold. `standing`: the approval that it has used, and
 * the only one that counts; one that was ended meanwhile counts no more.
 */
export async function decideAgain(
  services: Uses<'clock' | 'store'> & { facts: FactsReader; loadFacts: FactsLoader },
  call: Call,
  ask: Ask,
  {
    connectionId,
    isApproved,
    standing,
  }: { connectionId: string; isApproved: boolean; standing: StandingApproval | undefined },
): Promise<Forwarded | undefined> {
  const { broker } = services;
  const { platform: platformId } = call.action;
  const now = broker.clock();
  const { rows } = await reloadPrincipal(services, call.who, platformId);
  const loaded = await services.loadFacts(rows, platformId, now);
  const { organisationId } = call.record;
  const stands =
    standing && (await standsFor(broker.store.db, { organisation_id: organisationId, id: standing.id }, now));
  const facts = { ...withoutBreakers(loaded.facts), standing: stands ? [standing] : [] };
  const verdict = decide(facts, ask, now);
  if (verdict.kind === 'deny') return { kind: 'denied_meanwhile', verdict, decided: decidedBy(verdict, loaded) };
  const connection = verdict.grant && loaded.connections.get(verdict.grant.id);
  const isMasked = isDeepStrictEqual(verdict.mask, call.mask);
  if ((verdict.kind === 'allow' || isApproved) && connection?.id === connectionId && isMasked) return undefined;
  const detail = 'What decides this call changed while its token was refreshed. Nothing was sent: send the call again.';
  return { kind: 'unreachable', code: 'token_unavailable', detail, sent: false };
}
