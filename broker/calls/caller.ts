/**
 * For whom a call is: the headers `X-Svc-Caller`, another way to say `caller` (specification, Caller identity), and `X-Svc-Session`
 * (Authentication 4), and the person, on platforms that hold one token per person.
 */
import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import type { Replay } from '../approvals/replay.ts';
import type { RecordedCaller } from '../audit/outcome.ts';
import { SESSION_ID } from '../auth/agent-token.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { type Honoured, honouredCaller, type Identification, type Unidentified } from '../people/people.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { LONG_WAIT_MS } from '../runtime/waits.ts';
import { type Action, CallerIdentity } from '../wire/action.ts';
import { firstProblem } from '../wire/validation.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';

export type Caller = z.infer<typeof CallerIdentity>;

/**
 * Whom a call is for: what the body says, or the header `jwt <token>` or `id <source>:<id>`, split at the first colon.
 * A malformed header, two of them, and a header that says another than the body are an error, in words for a 400.
 *
 * @param headers every value of the header, as Node reads it
 */
export function readCaller(
  headers: readonly string[] | undefined,
  inBody: Caller | undefined,
): { ok: true; caller: Caller | undefined } | { ok: false; error: string } {
  if (headers === undefined) return { ok: true, caller: inBody };
  const refuse = (problem: string) => ({ ok: false as const, error: `X-Svc-Caller: ${problem}` });
  const [value = '', ...more] = headers;
  if (more.length > 0) return refuse('send one header.');
  // Node reads header bytes as Latin-1.
  const bytes = Buffer.from(value, 'latin1');
  if (!isUtf8(bytes)) return refuse('must be in UTF-8.');
  const [, token, source, id] = /^(?:jwt (\S+)|id ([^:]*):(.*))$/su.exec(bytes.toString('utf8')) ?? [];
  if (token === undefined && id === undefined) return refuse('write "jwt <token>" or "id <source>:<id>".');
  const read = CallerIdentity.safeParse(token === undefined ? { source, id } : { assertion: token });
  if (!read.success) return refuse(firstProblem(read.error));
  if (inBody !== undefined && !isDeepStrictEqual(inBody, read.data))
    return refuse('says another than caller in the body; send one of the two.');
  return { ok: true, caller: read.data };
}

/**
 * Whoever calls, with the session of the marker. Only a child has none in its token: who signs its tokens itself says there in
 * which session it is, and the marker, which anything on the way could set, says nothing.
 *
 * @param marker as the caller sent it; a list where it was sent more than once
 */
export function inSession(
  who: AgentPrincipal,
  marker: string | readonly string[] | undefined,
): { ok: true; who: AgentPrincipal } | { ok: false; error: string } {
  if (marker === undefined || who.agent.agent_type !== 'child') return { ok: true, who };
  if (typeof marker === 'string' && SESSION_ID.test(marker)) return { ok: true, who: { ...who, sessionId: marker } };
  return { ok: false, error: 'X-Svc-Session: 1 to 128 letters, digits or ._~:@/+=-, one header.' };
}

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
 * The person whom a call is for. Undefined: the platform does not hold one token per person, and whoever was named counts for nothing.
 * `late`: fetching the keys of an issuer may take seconds, and did; now they are here. Only this is timed: a store that is slow is
 * slow each time.
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
