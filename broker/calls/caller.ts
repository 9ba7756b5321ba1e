/**
 * Whom a call is for: the header `X-Svc-Caller`, an alternative to `caller` in the body (specification, Caller identity), the header
 * `X-Svc-Session` (Authentication 4), and the person, on platforms that hold one token per person.
 */
import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import type { Replay } from '../approvals/replay.ts';
import type { RecordedCaller } from '../audit/outcome.ts';
import { SESSION_ID } from '../auth/agent-token.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import {
  type Honoured,
  honouredCaller,
  type Identification,
  NO_CALLER_NAMED,
  type Unidentified,
} from '../people/people.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { LONG_WAIT_MS } from '../runtime/waits.ts';
import { type Action, CallerIdentity } from '../wire/action.ts';
import { firstProblem } from '../wire/validation.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';

export type Caller = z.infer<typeof CallerIdentity>;

/**
 * Reads the caller from the body, or from the header `jwt <token>` or `id <source>:<id>`, split at the first colon. A malformed header, a
 * repeated header, and a header that differs from the body are errors, worded for a 400.
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
    return refuse('names another caller than the body; send only one of the two.');
  return { ok: true, caller: read.data };
}

/**
 * Returns the principal with the session of the `X-Svc-Session` header. Only a child lacks a session in its token; for an agent that signs
 * its own tokens the token says the session, and the header, which any intermediary could set, is ignored.
 *
 * @param marker the header as sent; a list when it was sent more than once
 */
export function inSession(
  who: AgentPrincipal,
  marker: string | readonly string[] | undefined,
): { ok: true; who: AgentPrincipal } | { ok: false; error: string } {
  if (marker === undefined || who.agent.agent_type !== 'child') return { ok: true, who };
  if (typeof marker === 'string' && SESSION_ID.test(marker)) return { ok: true, who: { ...who, sessionId: marker } };
  return { ok: false, error: 'X-Svc-Session: 1 to 128 letters, digits or ._~:@/+=-, one header.' };
}

/** Identifies the caller of a request; the lookup runs once, however often this is called. */
export type Identify = () => Promise<Identification>;

type CallerSource = {
  who: AgentPrincipal;
  action: Action;
  identify: Identify | undefined;
  replay: Replay | undefined;
};

const NO_CALLER: Unidentified = { reason: 'no_caller', detail: NO_CALLER_NAMED };

/**
 * Returns the person whom the call is for. Undefined: the platform does not hold one token per person, and any named caller is ignored.
 * `late`: fetching the issuer's keys took longer than LONG_WAIT_MS, so the call has to be decided again (the keys are cached now). Only
 * that fetch is timed, because a slow store would be slow each time.
 */
export async function callerOfCall(
  { broker }: Pick<CallServices, 'broker'>,
  { who, action, identify, replay }: CallerSource,
  manifest: Manifest | undefined,
): Promise<Honoured | Unidentified | 'late' | undefined> {
  const perPerson = manifest?.per_person;
  if (!perPerson?.enabled) return undefined;
  // The approval was given for this person. A source no longer accepted, or consent that the person ended, is found when the tokens are
  // loaded.
  if (replay) return callerOfReplay(replay);
  if (identify === undefined) return NO_CALLER;
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
  caller === undefined
    ? NO_CALLER
    : { verified: caller.verified, personId: caller.person_id, namedBy: caller.named_by };

/** The part of the caller that is recorded: never who it is. */
export const recordedCaller = (caller: Call['caller']): RecordedCaller | undefined =>
  caller === undefined || 'reason' in caller
    ? undefined
    : {
        verified: caller.verified,
        ...(caller.personId !== undefined && { person_id: caller.personId }),
        ...(caller.namedBy !== undefined && { named_by: caller.namedBy }),
      };
