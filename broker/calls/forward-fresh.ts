/** A call with a token that may have to be refreshed first, or when the platform refuses it: then it is sent once more. */

import { noteFlags } from '../audit/row.ts';
import type { Broker } from '../broker.ts';
import type { ConnectionFacts } from '../facts/facts.ts';
import { isExpired, type OAuthCredential } from '../oauth-client/credential.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Call } from './call.ts';
import type { Credential, Credentials, Forwarded } from './forward.ts';

/** A platform that refuses a token which was just issued refuses more than the token. */
const JUST_ISSUED_MS = 30_000;
/** Whoever waited longer for a token may have been suspended meanwhile. */
const LONG_WAIT_MS = 1_000;

/**
 * Sends the call with a credential, by `send`, which is all that is done with one that is no OAuth token. `decideAgain`: asked
 * after a wait for another token; its answer, if there is one, takes the place of sending.
 */
export async function forwardFresh(
  services: { broker: Broker; credentials: Credentials; oauth: OAuthConnections },
  manifest: Manifest,
  call: Call,
  connection: ConnectionFacts,
  credential: Credential,
  send: (credential: Credential) => Promise<Forwarded>,
  decideAgain: () => Promise<Forwarded | undefined>,
): Promise<Forwarded> {
  const { broker } = services;
  if (!credential.oauth) return await send(credential);
  let current = credential;
  let { oauth } = credential;
  if (oauth.refreshable && oauth.refreshAt !== null && oauth.refreshAt <= broker.clock()) {
    const begun = performance.now();
    const fresh = await refreshed(services, manifest, call, connection, { oauth, refused: false });
    if (fresh.kind === 'credential') current = fresh.credential;
    // What cannot be refreshed just now may be good for a minute still: by the time after the wait, which may be long.
    else if (fresh.isGone || isExpired(oauth, broker.clock())) return fresh.forwarded;
    const changed = performance.now() - begun > LONG_WAIT_MS ? await decideAgain() : undefined;
    if (changed) return changed;
  }
  oauth = current.oauth ?? oauth;
  if (isExpired(oauth, broker.clock())) return REAUTH;
  const first = await send(current);
  if (first.kind !== 'answer') return first;
  const isRefused = first.status === 401;
  if (isRefused && broker.clock() - oauth.issuedAt < JUST_ISSUED_MS) return { ...first, justIssued: true };
  if (!isRefused || !oauth.refreshable) return oauth.lapsed ? { ...first, lapsed: true } : first;
  const begun = performance.now();
  const fresh = await refreshed(services, manifest, call, connection, { oauth, refused: true });
  // The platform refused the call, so it did nothing of it: it may be sent again.
  if (fresh.kind !== 'credential') return fresh.forwarded;
  if (fresh.credential.oauth?.lapsed) return first;
  const changed = performance.now() - begun > LONG_WAIT_MS ? await decideAgain() : undefined;
  if (changed) return changed;
  const second = await send(fresh.credential);
  return second.kind === 'answer' && second.status === 401 ? { ...second, justIssued: true } : second;
}

/** As if the platform had been asked with a token that is over, which it would refuse. */
const REAUTH: Forwarded = {
  kind: 'refused_locally',
  error: 'credential_over',
  detail: 'The consent to this connection is over; somebody has to connect it again.',
};

const GONE = { kind: 'forwarded', forwarded: REAUTH, isGone: true } as const;

async function refreshed(
  { oauth: connections, credentials, broker }: { broker: Broker; credentials: Credentials; oauth: OAuthConnections },
  manifest: Manifest,
  { row, action }: Call,
  connection: ConnectionFacts,
  { oauth, refused }: { oauth: OAuthCredential; refused: boolean },
): Promise<
  | { kind: 'credential'; credential: Credential }
  /** `isGone`: somebody disconnected, so that no token of before may be used. */
  | { kind: 'forwarded'; forwarded: Forwarded; isGone: boolean }
> {
  const { organisation_id: organisation } = row;
  const place = { organisation_id: organisation, id: connection.id, platform_id: action.platform };
  const done = await connections.refresh(place, manifest, oauth, refused);
  if (done.kind === 'gone') return GONE;
  if (done.kind === 'unavailable') {
    noteFlags(row, { refresh: 'unavailable' });
    const { code, detail } = done;
    const forwarded = { kind: 'unreachable', code, detail, sent: false } as const;
    return { kind: 'forwarded', forwarded, isGone: false };
  }
  const credential = credentials.open(organisation, { ...connection, credential: done.credential }, false);
  if (credential === undefined || credential === 'unreadable') return GONE;
  broker.log.debug({ connection: connection.id }, 'a call goes on with refreshed tokens');
  return { kind: 'credential', credential };
}
