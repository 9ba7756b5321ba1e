/** Starts the consent of a person, before the agent's first call for them (specification, POST /v1/consent/caller/start). */
import type { AgentPrincipal } from '../../auth/principal.ts';
import type { Uses } from '../../broker.ts';
import { isEntitled, NOT_ON_PLAN } from '../../entitlement.ts';
import type { ConnectionFacts } from '../../facts/connection-facts.ts';
import type { FactsLoader, LoadedFacts } from '../../facts/facts.ts';
import { type BegunConsent, beginConsent, MAX_OPEN_CONSENTS } from '../../people/consents.ts';
import { type Caller, honouredCaller, type People } from '../../people/people.ts';
import { connectionChoices, effectiveGrant } from '../../policy/attenuation.ts';
import { decide } from '../../policy/decide.ts';
import type { Instant } from '../../policy/facts.ts';

/** `detail`: a sentence for the agent. */
export type StartedConsent =
  | { kind: 'begun'; consent: BegunConsent }
  | { kind: 'not_on_plan' | 'unsuitable' | 'unidentified' | 'too_many'; detail: string };

export async function startConsent(
  services: Uses<'config' | 'clock' | 'store'> & { people: People; loadFacts: FactsLoader },
  who: AgentPrincipal,
  asked: { platformId: string; caller: Caller; connectionId: string | undefined },
): Promise<StartedConsent> {
  const { broker, people } = services;
  const { organisation_id: organisationId } = who.agent;
  const { platformId, caller } = asked;
  if (!isEntitled(broker, organisationId, 'per_person_tokens'))
    return { kind: 'not_on_plan', detail: NOT_ON_PLAN.per_person_tokens };
  const now = broker.clock();
  const loaded = await services.loadFacts(who.rows, now);
  const perPerson = loaded.platform?.manifest.per_person;
  if (!perPerson?.enabled)
    return {
      kind: 'unsuitable',
      detail: loaded.platform
        ? `${platformId} does not hold one token per person. Make the call without a consent.`
        : `The organisation has no platform "${platformId}".`,
    };
  const connection = connectionOfConsent(loaded, platformId, asked.connectionId, now);
  if (typeof connection === 'string') return { kind: 'unsuitable', detail: connection };
  const identify = () => people.identify(organisationId, caller);
  const honoured = await honouredCaller(broker, organisationId, perPerson, { caller, identify });
  if ('reason' in honoured) return { kind: 'unidentified', detail: honoured.detail };
  const consent = await beginConsent(services, who, { platformId, connectionId: connection.id }, honoured.who);
  return consent === 'too_many'
    ? {
        kind: 'too_many',
        detail: `${MAX_OPEN_CONSENTS} consents of this agent, with its parent or children, are pending already. Wait until some are given or have expired.`,
      }
    : { kind: 'begun', consent };
}

/** Returns the connection that calls would use, chosen in the same way; or a sentence that says why there is none. */
function connectionOfConsent(
  { facts, connections }: LoadedFacts,
  platformId: string,
  connectionId: string | undefined,
  now: Instant,
): ConnectionFacts | string {
  const ask = { platformId, scope: '', ...(connectionId !== undefined && { connectionId }) };
  const grant = effectiveGrant(facts, ask);
  const found = grant && connections.get(grant.id);
  if (found) {
    // A consent for scopes that no call could use is not started: the later call would be refused.
    const verdicts = grant.scopes.map((scope) => decide(facts, { ...ask, scope }, now));
    if (verdicts.some(({ kind }) => kind !== 'deny')) return found;
    return `The agent has no usable permission on this platform now (${verdicts[0]?.reason ?? 'scope_not_granted'}), so no consent is requested.`;
  }
  if (connectionId !== undefined) return 'The agent has no grant on this connection of the platform.';
  const choices = connectionChoices(facts.grants, ask, facts.platform?.defaultConnectionId ?? null);
  if (choices.length > 0)
    return `Name the connection in connection_id: the agent has grants on ${choices.map(({ connectionId: id, connection }) => `${id} (${connection?.label})`).join(', ')}.`;
  return facts.grants.length > 0
    ? 'The platform has no connection for which people could consent. An owner has to make one.'
    : 'The agent has no grant on this platform. Ask for access first.';
}
