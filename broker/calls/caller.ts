/** The headers `X-Svc-Caller`, another way to say `caller` (specification, Caller identity), and `X-Svc-Session` (Authentication 4). */
import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { SESSION_ID } from '../auth/agent-token.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { CallerIdentity } from '../wire/action.ts';
import { firstProblem } from '../wire/validation.ts';

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
