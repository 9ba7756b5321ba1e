/**
 * Sends an allowed call to its platform or MCP server with a valid credential: fetches a token first when needed, and once more when the
 * platform refuses it; the call is then sent again.
 */
import type { Ask, StandingApproval, Verdict } from '../policy/facts.ts';
import { toolOf } from '../policy/tool.ts';
import { LONG_WAIT_MS } from '../runtime/waits.ts';
import { isExpired, isJustIssued } from '../token-source/access-token.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';
import type { Connected } from './connect.ts';
import type { Credential } from './credentials.ts';
import { decideAgain } from './decide-call.ts';
import { forward } from './forward.ts';
import { forwardGit } from './forward-git.ts';
import { forwardMcp } from './forward-mcp.ts';
import type { Forwarded } from './forwarded.ts';
import { isDue, isRequest, REAUTH, type Renew, renewerOf, type TokenServices } from './token-renewal.ts';

/**
 * `ask`, `verdict`: how the call was decided. `approvals`: how many people approved it, which stands in for a hold that needs no more of
 * them. `standing`: the standing approval that it used.
 */
type Allowed = Extract<Connected, { ok: true }> & {
  ask: Ask;
  verdict: Verdict;
  approvals: number;
  standing: StandingApproval | undefined;
};

export async function sendCall(
  services: CallServices,
  call: Call,
  { platform, connection, credential, ask, verdict, approvals, standing }: Allowed,
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
      decideAgain: () => decideAgain(services, call, ask, { connectionId: connection.id, approvals, standing }),
    },
  );
}

/** `refreshUnavailable`: a new token was due, but the issuer was unavailable. */
export type Fresh = Forwarded & { refreshUnavailable?: boolean };

type Steps = {
  /** Sends the call with a given credential. */
  send: (credential: Credential) => Promise<Forwarded>;
  /** Decides again after a long wait for another token; a result replaces sending. */
  decideAgain: () => Promise<Forwarded | undefined>;
};

/** Sends the call with a credential that is valid now. */
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

/** `stored`: the connection's credential, when it is a token. */
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
    // A token that cannot be refreshed now may still be valid for a minute; checked against the time after the wait, which may be long.
    else if (fresh.isFinal || !current?.token || isExpired(current.token, clock())) return fresh.forwarded;
    const changed = performance.now() - begun > LONG_WAIT_MS ? await decideAgain() : undefined;
    if (changed) return changed;
  }
  const token = current?.token;
  if (current === undefined || token === undefined || isExpired(token, clock())) return REAUTH;
  const first = await send(current);
  // A `not_passed_on` answer has not reached the client, so the call may be sent again.
  if (first.kind !== 'answer' && first.kind !== 'not_passed_on') return first;
  // The token is never sent to the target of a redirect.
  const isRefused = first.status === 401 && !('followed' in first);
  if (isRefused && isJustIssued(token, clock())) return justIssued(first);
  if (!isRefused || !token.refreshable)
    return token.lapsed && first.kind === 'answer' ? { ...first, lapsed: true } : first;
  const begun = performance.now();
  const fresh = await renew(token, true);
  // The platform refused the call without effect, so it may be sent again.
  if (fresh.kind === 'none') return fresh.forwarded;
  if (fresh.credential.token?.lapsed) return first;
  const changed = performance.now() - begun > LONG_WAIT_MS ? await decideAgain() : undefined;
  if (changed) return changed;
  const second = await send(fresh.credential);
  return justIssued(second);
}

/** Marks a 401 to a token that was just issued. */
const justIssued = (forwarded: Forwarded): Forwarded =>
  forwarded.kind === 'answer' && forwarded.status === 401 && !forwarded.followed
    ? { ...forwarded, justIssued: true }
    : forwarded;
