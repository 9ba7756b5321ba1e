/** A call with a token that may have to be refreshed first, or when the platform refuses it: then it is sent once more. */

import type { Broker } from '../broker.ts';
import type { ConnectionFacts } from '../facts/facts.ts';
import { isExpired, type OAuthCredential } from '../oauth-client/credential.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Call } from './call.ts';
import type { Credential, Credentials } from './credentials.ts';
import type { Forwarded } from './forwarded.ts';

/** A platform that refuses a token which was just issued refuses more than the token. */
const JUST_ISSUED_MS = 30_000;
/** Whoever waited longer for a token may have been suspended meanwhile. */
const LONG_WAIT_MS = 1_000;

/** `refreshUnavailable`: a new token was due, and the authorization server had none to give. */
export type Fresh = Forwarded & { refreshUnavailable?: boolean };

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
): Promise<Fresh> {
  const { broker } = services;
  if (!credential.oauth) return await send(credential);
  let refreshUnavailable = false;
  const refresh: Refresh = async (oauth, refused) => {
    const fresh = await refreshed(services, manifest, call, connection, { oauth, refused });
    if (fresh.kind === 'forwarded' && !fresh.isGone) refreshUnavailable = true;
    return fresh;
  };
  const forwarded = await sendFresh(broker.clock, credential, credential.oauth, { send, refresh, decideAgain });
  return refreshUnavailable ? { ...forwarded, refreshUnavailable } : forwarded;
}

type Refresh = (oauth: OAuthCredential, refused: boolean) => Promise<Refreshed>;

type Steps = {
  send: (credential: Credential) => Promise<Forwarded>;
  refresh: Refresh;
  decideAgain: () => Promise<Forwarded | undefined>;
};

async function sendFresh(
  clock: () => number,
  credential: Credential,
  stored: OAuthCredential,
  { send, refresh, decideAgain }: Steps,
): Promise<Forwarded> {
  let current = credential;
  let oauth = stored;
  if (oauth.refreshable && oauth.refreshAt !== null && oauth.refreshAt <= clock()) {
    const begun = performance.now();
    const fresh = await refresh(oauth, false);
    if (fresh.kind === 'credential') current = fresh.credential;
    // What cannot be refreshed just now may be good for a minute still: by the time after the wait, which may be long.
    else if (fresh.isGone || isExpired(oauth, clock())) return fresh.forwarded;
    const changed = performance.now() - begun > LONG_WAIT_MS ? await decideAgain() : undefined;
    if (changed) return changed;
  }
  oauth = current.oauth ?? oauth;
  if (isExpired(oauth, clock())) return REAUTH;
  const first = await send(current);
  if (first.kind !== 'answer') return first;
  const isRefused = first.status === 401;
  if (isRefused && clock() - oauth.issuedAt < JUST_ISSUED_MS) return { ...first, justIssued: true };
  if (!isRefused || !oauth.refreshable) return oauth.lapsed ? { ...first, lapsed: true } : first;
  const begun = performance.now();
  const fresh = await refresh(oauth, true);
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

type Refreshed =
  | { kind: 'credential'; credential: Credential }
  /** `isGone`: somebody disconnected, so that no token of before may be used. */
  | { kind: 'forwarded'; forwarded: Forwarded; isGone: boolean };

async function refreshed(
  { oauth: connections, credentials, broker }: { broker: Broker; credentials: Credentials; oauth: OAuthConnections },
  manifest: Manifest,
  { record, action }: Call,
  connection: ConnectionFacts,
  { oauth, refused }: { oauth: OAuthCredential; refused: boolean },
): Promise<Refreshed> {
  const { organisationId: organisation } = record;
  const place = { organisation_id: organisation, id: connection.id, platform_id: action.platform };
  const done = await connections.refresh(place, manifest, oauth, refused);
  if (done.kind === 'gone') return GONE;
  if (done.kind === 'unavailable') {
    const { code, detail } = done;
    return { kind: 'forwarded', forwarded: { kind: 'unreachable', code, detail, sent: false }, isGone: false };
  }
  const credential = credentials.open(organisation, { ...connection, credential: done.credential }, false);
  if (credential === undefined || credential === 'unreadable') return GONE;
  broker.log.debug({ connection: connection.id }, 'a call goes on with refreshed tokens');
  return { kind: 'credential', credential };
}
