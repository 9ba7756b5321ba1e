/** Decides a call that is to be made, and decides again, on the current facts, one that was allowed and then waited for a token. */
import { isDeepStrictEqual } from 'node:util';
import type { Uses } from '../broker.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { withoutBreakers } from '../policy/breaker.ts';
import { decide } from '../policy/decide.ts';
import type { Ask, Facts, Instant, StandingApproval, Verdict } from '../policy/facts.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { standsFor } from '../store/standing-approvals.ts';
import { type Call, decidedBy } from './call.ts';
import type { EarlierCalls } from './earlier-calls.ts';
import type { Forwarded } from './forwarded.ts';
import { usesTheSame } from './limits.ts';
import type { ToolOnFile } from './mcp/tool-on-file.ts';
import { approvalsNeeded } from './refusal.ts';
import { reloadPrincipal } from './reload.ts';
import { type Repeatable, repeatOf } from './repeat.ts';

/**
 * Decides the call. The body is compared with standing approvals only when something holds the call, because that needs the whole body.
 *
 * @param spent standing approvals that turned out to be used up or ended meanwhile
 */
export function decideCall(
  facts: Facts,
  call: Repeatable,
  { ask, onFile, spent }: { ask: Ask; onFile: ToolOnFile | undefined; spent: ReadonlySet<string> },
  now: Instant,
): { verdict: Verdict; ask: Ask } {
  const verdict = decide(facts, ask, now);
  const repeat = verdict.kind === 'hold' ? repeatOf(call, onFile) : undefined;
  if (!repeat) return { verdict, ask };
  const whole = { ...ask, repeat };
  const standing = facts.standing?.filter(({ id }) => !spent.has(id)) ?? [];
  return { verdict: decide({ ...facts, standing }, whole, now), ask: whole };
}

/** Whether every look-back mark that the new decision needs was noted with the call's intent. */
const isNoted = (again: Ask, { call }: Ask): boolean =>
  (again.call?.notes ?? []).every((kind) => call?.notes?.includes(kind));

/**
 * Returns undefined when the call may be sent. `approvals`: how many people approved it, which stands in for a hold that needs
 * no more of them. `standing`: the standing approval that it used, the only one that counts, unless it was ended meanwhile.
 */
export async function decideAgain(
  services: Uses<'clock' | 'store'> & { facts: FactsReader; loadFacts: FactsLoader; earlierCalls: EarlierCalls },
  call: Call,
  ask: Ask,
  {
    connectionId,
    approvals,
    standing,
  }: { connectionId: string; approvals: number; standing: StandingApproval | undefined },
): Promise<Forwarded | undefined> {
  const { broker } = services;
  const { platform: platformId } = call.action;
  const now = broker.clock();
  const { rows } = await reloadPrincipal(services, call.who, platformId);
  const loaded = await services.loadFacts(rows, now);
  const { organisationId } = call.record;
  const stands =
    standing && (await standsFor(broker.store.db, { organisation_id: organisationId, id: standing.id }, now));
  const facts = { ...withoutBreakers(loaded.facts), standing: stands ? [standing] : [] };
  const { guardrails, policy } = facts;
  const readsPast = guardrails.readsPast || policy?.readsPast || ask.call?.earlier !== undefined;
  // Look up earlier calls again: the previous result was for the previous rules.
  const again = readsPast
    ? await services.earlierCalls.withOthers(facts, ask, { auditId: call.record.auditId, now })
    : ask;
  const verdict = decide(facts, again, now);
  if (verdict.kind === 'deny') return { kind: 'denied_meanwhile', verdict, decided: decidedBy(verdict, loaded) };
  const connection = verdict.grant && loaded.connections.get(verdict.grant.id);
  const isSame =
    connection?.id === connectionId &&
    isDeepStrictEqual(verdict.mask, call.mask) &&
    // The limits it uses and its look-back marks were stored with its intent, so they must still be the same.
    (!readsPast || (usesTheSame(facts, ask, now) && isNoted(again, ask)));
  if (approvals >= approvalsNeeded(verdict) && isSame) return undefined;
  const detail =
    'The facts on which this call is decided changed while its token was refreshed. Nothing was sent: send the call again.';
  return { kind: 'unreachable', code: 'token_unavailable', detail, sent: false };
}
