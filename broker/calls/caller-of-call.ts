/** The person whom a call is for, on platforms that hold one token per person (specification, Caller identity). */
import type { Replay } from '../approvals/replay.ts';
import type { RecordedCaller } from '../audit/outcome.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { type Honoured, honouredCaller, type Identification, type Unidentified } from '../people/people.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Action } from '../wire/action.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';
import { LONG_WAIT_MS } from './reload.ts';

/** Who the caller of a request is; made once, however often it is asked. */
export type Identify = () => Promise<Identification>;

type Asked = {
  who: AgentPrincipal;
  action: Action;
  identify: Identify | undefined;
  replay: Replay | undefined;
};

const NOBODY: Unidentified = { reason: 'no_caller', detail: 'No caller was named.' };

/**
 * Undefined: the platform does not hold one token per person, and whoever was named counts for nothing. `late`: fetching the keys of
 * an issuer may take seconds, and did; now they are here. Only this is timed: a store that is slow is slow each time.
 */
export async function callerOfCall(
  { broker }: Pick<CallServices, 'broker'>,
  { who, action, identify, replay }: Asked,
  manifest: Manifest | undefined,
): Promise<Honoured | Unidentified | 'late' | undefined> {
  const perPerson = manifest?.per_person;
  if (!perPerson?.enabled) return undefined;
  // Approved for this person. That a source is not taken any more, or that the person ended it, is found with the tokens.
  if (replay) return callerOfReplay(replay);
  if (identify === undefined) return NOBODY;
  let tookMs = 0;
  const timed: Identify = async () => {
    const began = performance.now();
    const identified = await identify();
    tookMs = performance.now() - began;
    return identified;
  };
  const given = { caller: action.caller, identify: timed };
  const caller = await honouredCaller(broker, who.agent.organisation_id, perPerson, given);
  return tookMs > LONG_WAIT_MS ? 'late' : caller;
}

const callerOfReplay = ({ caller }: Replay): Honoured | Unidentified =>
  caller === undefined ? NOBODY : { verified: caller.verified, personId: caller.person_id, namedBy: caller.named_by };

/** What of it goes on record: never who it is. */
export const recordedCaller = (caller: Call['caller']): RecordedCaller | undefined =>
  caller === undefined || 'reason' in caller
    ? undefined
    : {
        verified: caller.verified,
        ...(caller.personId !== undefined && { person_id: caller.personId }),
        ...(caller.namedBy !== undefined && { named_by: caller.namedBy }),
      };
