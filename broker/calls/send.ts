/**
 * Sends an allowed call, to its platform or MCP server, with a credential that works: a token may have to be got first, or again when the platform
 * refuses it, and then the call is sent once more.
 */
import type { Ask, StandingApproval, Verdict } from '../policy/facts.ts';
import { toolOf } from '../policy/tool.ts';
import { LONG_WAIT_MS } from '../runtime/waits.ts';
import { isExpired, isJustIssued } from '../token-source/access-token.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';
import type { Connected } from './connect.ts';
import type { Credential } from './credentials.ts';
import { decideAgain } from './decide-again.ts';
import { forward } from './forward.ts';
import { forwardGit } from './forward-git.ts';
import { forwardMcp } from './forward-mcp.ts';
import type { Forwarded } from './forwarded.ts';
import { isDue, isRequest, REAUTH, type Renew, renewerOf, type TokenServices } from './token-renewal.ts';

/** `ask`, `verdict`: how it was decided. `isApproved`: a person approved it, which stands in for a hold. `standing`: was used for it. */
type Allowed = Extract<Connected, { ok: true }> & {
  ask: Ask;
  verdict: Verdict;
  isApproved: boolean;
  standing: StandingApproval | undefined;
};

export async function sendCall(
  services: CallServices,
  call: Call,
  { platform, connection, credential, ask, verdict, isApproved, standing }: Allowed,
): Promise<Fresh> {
  const { grant } = verdict;
  const attested = { turns: 0 };
  if (connection.personTokens !== undefined) services.tokenUses.note(connection.personTokens);
  return await forwardFresh(
    services,
    call,
    { platform, connection, credential },
    {
      send: (fresh) => {
        const { git } = call;
        if (git) return forwardGit(services.broker, { ...call, git }, { ...platform, connection }, fresh);
        return platform.rules.kind === 'mcp'
          ? forwardMcp(services, call, { platform, connection, credential: fresh, grant, attested }, toolOf(call.path))
          : forward(services.broker, platform, call, connection, fresh);
      },
      decideAgain: () => decideAgain(services, call, ask, { connectionId: connection.id, isApproved, standing }),
    },
  );
}

/** `refreshUnavailable`: a new token was due, and whoever issues it had none to give. */
export type Fresh = Forwarded & { refreshUnavailable?: boolean };

type Steps = {
  /** All that is done with a credential that stays as it is. */
  send: (credential: Credential) => Promise<Forwarded>;
  /** Asked after a wait for another token; its answer, if there is one, takes the place of sending. */
  decideAgain: () => Promise<Forwarded | undefined>;
};

/** Sends the call with a credential that is good now. */
export async function forwardFresh(
  services: TokenServices,
  { record, action }: Call,
  {
    platform,
    connection,
    credential,
  }: Pick<Extract<Connected, { ok: true }>, 'platform' | 'connection' | 'credential'>,
  steps: Steps,
): Promise<Fresh> {
  const { organisationId } = record;
  const at = { organisationId, platformId: action.platform, manifest: platform.manifest, connection };
  const renew = renewerOf(services, at, credential);
  const kept = isRequest(credential) ? undefined : credential;
  if (renew === undefined) return kept ? await steps.send(kept) : REAUTH;
  let refreshUnavailable = false;
  const noted: Renew = async (seen, refused) => {
    const fresh = await renew(seen, refused);
    if (fresh.kind === 'none' && !fresh.isFinal) refreshUnavailable = true;
    return fresh;
  };
  const forwarded = await sendFresh(services.broker.clock, kept, noted, steps);
  return refreshUnavailable ? { ...forwarded, refreshUnavailable } : forwarded;
}

/** `stored`: what the connection holds, where that is a token. */
async function sendFresh(
  clock: () => number,
  stored: Credential | undefined,
  renew: Renew,
  { send, decideAgain }: Steps,
): Promise<Forwarded> {
  let current = stored;
  if (isDue(current?.token, clock())) {
    const begun = performance.now();
    const fresh = await renew(current?.token, false);
    if (fresh.kind === 'credential') current = fresh.credential;
    // What cannot be refreshed just now may be good for a minute still: by the time after the wait, which may be long.
    else if (fresh.isFinal || !current?.token || isExpired(current.token, clock())) return fresh.forwarded;
    const changed = performance.now() - begun > LONG_WAIT_MS ? await decideAgain() : undefined;
    if (changed) return changed;
  }
  const token = current?.token;
  if (current === undefined || token === undefined || isExpired(token, clock())) return REAUTH;
  const first = await send(current);
  // What is not passed on is nothing that a client has seen.
  if (first.kind !== 'answer' && first.kind !== 'not_passed_on') return first;
  // What the platform redirected to never got the token.
  const isRefused = first.status === 401 && !('followed' in first);
  if (isRefused && isJustIssued(token, clock())) return justIssued(first);
  if (!isRefused || !token.refreshable)
    return token.lapsed && first.kind === 'answer' ? { ...first, lapsed: true } : first;
  const begun = performance.now();
  const fresh = await renew(token, true);
  // The platform refused the call, so it did nothing of it: it may be sent again.
  if (fresh.kind === 'none') return fresh.forwarded;
  if (fresh.credential.token?.lapsed) return first;
  const changed = performance.now() - begun > LONG_WAIT_MS ? await decideAgain() : undefined;
  if (changed) return changed;
  const second = await send(fresh.credential);
  return justIssued(second);
}

/** Of a 401 to a token that was issued just now. */
const justIssued = (forwarded: Forwarded): Forwarded =>
  forwarded.kind === 'answer' && forwarded.status === 401 && !forwarded.followed
    ? { ...forwarded, justIssued: true }
    : forwarded;
