/** A call with a token that may have to be refreshed first, or when the platform refuses it: then it is sent once more. */
import { isOver, type OAuthCredential } from '../oauth/credential.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { type Call, noteFlags } from './call.ts';
import type { ConnectionFacts } from './facts.ts';
import type { Credential, Forwarded } from './forward.ts';
import type { Governor } from './governor.ts';

/** A platform that refuses a token which was just issued refuses more than the token. */
const JUST_ISSUED_MS = 30_000;

/** Sends the call with a credential, by `send`, which is all that is done with one that is no OAuth token. */
export async function forwardFresh(
  governor: Governor,
  manifest: Manifest,
  call: Call,
  connection: ConnectionFacts,
  credential: Credential,
  send: (credential: Credential) => Promise<Forwarded>,
): Promise<Forwarded> {
  const { broker } = governor;
  if (!credential.oauth) return await send(credential);
  let current = credential;
  let { oauth } = credential;
  const now = broker.clock();
  if (oauth.refreshable && oauth.refreshAt !== null && oauth.refreshAt <= now) {
    const fresh = await refreshed(governor, manifest, call, connection, { oauth, refused: false });
    if (fresh.kind === 'credential') current = fresh.credential;
    // What cannot be refreshed just now may be good for a minute still.
    else if (isOver(oauth, now)) return fresh.forwarded;
  }
  oauth = current.oauth ?? oauth;
  if (isOver(oauth, broker.clock())) return REAUTH;
  const first = await send(current);
  const isRefused = first.kind === 'answer' && first.status === 401;
  if (!isRefused || !oauth.refreshable || broker.clock() - oauth.issuedAt < JUST_ISSUED_MS)
    return first.kind === 'answer' && oauth.lapsed ? { ...first, lapsed: true } : first;
  const fresh = await refreshed(governor, manifest, call, connection, { oauth, refused: true });
  // The platform refused the call, so it did nothing of it: it may be sent again.
  if (fresh.kind !== 'credential') return fresh.forwarded;
  if (fresh.credential.oauth?.lapsed) return first;
  return await send(fresh.credential);
}

/** As if the platform had been asked with a token that is over, which it would refuse. */
const REAUTH: Forwarded = {
  kind: 'refused_locally',
  error: 'credential_over',
  detail: 'The consent to this connection is over; somebody has to connect it again.',
};

async function refreshed(
  { oauth: connections, credentials, broker }: Governor,
  manifest: Manifest,
  { row, action }: Call,
  connection: ConnectionFacts,
  { oauth, refused }: { oauth: OAuthCredential; refused: boolean },
): Promise<{ kind: 'credential'; credential: Credential } | { kind: 'forwarded'; forwarded: Forwarded }> {
  const { organisation_id: organisation } = row;
  const place = { organisation_id: organisation, id: connection.id, platform_id: action.platform };
  const done = await connections.refresh(place, manifest, oauth, refused);
  if (done.kind === 'gone') return { kind: 'forwarded', forwarded: REAUTH };
  if (done.kind === 'unavailable') {
    noteFlags(row, { refresh: 'unavailable' });
    const { detail } = done;
    return { kind: 'forwarded', forwarded: { kind: 'unreachable', code: 'token_unavailable', detail, sent: false } };
  }
  const credential = credentials.open(organisation, { ...connection, credential: done.credential }, false);
  if (credential === undefined || credential === 'unreadable') return { kind: 'forwarded', forwarded: REAUTH };
  broker.log.debug({ connection: connection.id }, 'a call goes on with refreshed tokens');
  return { kind: 'credential', credential };
}
