/** The local issuer: owner sessions as ES256 JWTs, signed by the broker itself. */
import type { IncomingMessage } from 'node:http';
import { AuthorNotAllowed } from '../audit/author-role.ts';
import { type Changing, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { Broker, Uses } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { signCompact, verifyCompact } from '../crypto/jws.ts';
import { isToken, mintToken } from '../crypto/one-time-token.ts';
import type { Secret } from '../crypto/secret.ts';
import { endSession, findOwnerOfSession, MAX_SESSION_MS, type ProviderSession } from '../store/ended-sessions.ts';
import { noteSignIn } from '../store/organisations.ts';
import type { Db } from '../store/store.ts';
import type { EndedSessionTable, OwnerTable } from '../store/tables/organisations.ts';
import { type AuthRefusal, type LocalPrincipal, type OwnerPrincipal, refused, type SignIn } from './principal.ts';
import { readSessionCookie } from './session-cookie.ts';

/** Explicit typing: no receipt, attestation or agent token is accepted as one (RFC 8725 section 3.11). */
export const SESSION_TYPE = 'svc-owner+jwt';
export const SESSION_SECONDS = MAX_SESSION_MS / 1000;

/** A session that was issued. `expiresAt`: seconds since the epoch. */
type Minted = { token: string; id: string; expiresAt: number };

/** The session at the identity provider that the owner signed in by, and the time of that sign-in (`authTimeOf`). */
type AtProvider = { session: ProviderSession; authTime: number | undefined };

/** Issues a session for this owner, with or without a session at the identity provider. */
export function mintOwnerSession(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'keys'>,
  owner: OwnerTable,
  provider?: AtProvider,
): Minted {
  const now = broker.clock();
  // With a fraction (NumericDate, RFC 7519 section 2); otherwise a session that begins in the second in which others are ended would end with them.
  const iat = now / 1000;
  const claims = {
    iss: broker.baseUrl,
    aud: `${broker.baseUrl}/owner`,
    sub: owner.id,
    org: owner.organisation_id,
    role: owner.role,
    sign_in: (provider === undefined ? 'local' : 'oidc') satisfies SignIn,
    ...(provider && { provider: provider.session }),
    ...(provider?.authTime !== undefined && { auth_time: provider.authTime }),
    jti: uuidv4(),
    iat,
    exp: Math.floor(iat) + SESSION_SECONDS,
  };
  return {
    token: signCompact(broker.keys.signer('session', now), { typ: SESSION_TYPE }, claims),
    id: claims.jti,
    expiresAt: claims.exp,
  };
}

/**
 * How an owner signed in, and from which address. `replaces`: the previous session of the browser (`sessionInBrowser`). `prove`: consumes the link, or
 * finds the passkey once more, in the transaction of the sign-in; an error that it throws is passed on, and nobody is signed in.
 */
type SigningIn = {
  by: 'link' | 'passkey' | 'provider';
  from: string;
  correlationId: string;
  replaces: EndedSessionTable | null | undefined;
  provider?: AtProvider;
  prove?: ((tx: Db) => Promise<void>) | undefined;
};

/**
 * Issues a session for an owner who signed in with a browser, and ends the previous session of this browser, if any. Recorded in the audit.
 *
 * @throws AuthorNotAllowed when the owner was removed, or the account unlinked, meanwhile; AuditUnavailable. Then nobody is signed in
 */
export async function beginSession(
  services: Changing & Uses<'baseUrl' | 'keys'>,
  owner: OwnerTable,
  { by, from, correlationId, replaces, provider, prove }: SigningIn,
): Promise<Minted> {
  const { broker } = services;
  const session = mintOwnerSession(broker, owner, provider);
  const change = { reason: 'owner_signed_in', detail: `from ${from}` };
  await recordChange(services, { owner, how: 'console', correlationId }, change, async (tx, note) => {
    // Unlinking the account ends the sessions that began before it, and this one may begin afterwards.
    if (!(await noteSignIn(tx, owner, broker.clock()))) throw new AuthorNotAllowed();
    // After the statement above, which waits for a transaction that unlinks the account, and with it ends links and removes passkeys.
    await prove?.(tx);
    if (replaces) await endSession(tx, replaces);
    note({ session: session.id, sign_in: by });
  });
  return session;
}

/**
 * Ends a session everywhere, so that a copy of it is refused too, immediately and on every replica. Recorded in the audit.
 *
 * @throws AuditUnavailable, and then the session continues
 */
export const signOut = (services: Changing, who: OwnerPrincipal, by: Omit<ChangingOwner, 'owner'>): Promise<void> =>
  recordChange(services, { ...by, owner: who.owner }, { reason: 'owner_signed_out' }, async (tx, note) => {
    await endSession(tx, endedForm(who));
    note({ session: who.session.id });
  });

const endedForm = ({ organisationId, session }: OwnerPrincipal): EndedSessionTable => ({
  organisation_id: organisationId,
  session_id: session.id,
  expires_at: session.expiresAt * 1000,
});

/**
 * Verifies a session. The role is the owner's current one, not the one in the token, and a session that was signed out is
 * refused immediately on every replica: both come with the same query.
 */
export async function authenticateSession(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store' | 'keys'>,
  token: string,
): Promise<OwnerPrincipal | AuthRefusal> {
  const verified = verifyCompact(token, broker.keys.set('session').verifyKeys, { typ: SESSION_TYPE });
  if (!verified.ok) {
    if (verified.code === 'bad_signature')
      return refused('invalid_signature', "The session's signature does not match: sign in again.");
    return refused('invalid_token', 'This is not an owner session of this broker.');
  }
  const { iss, aud, sub, org, iat, exp, jti, sign_in: signIn, auth_time: authTime } = verified.payload;
  if (
    iss !== broker.baseUrl ||
    aud !== `${broker.baseUrl}/owner` ||
    typeof sub !== 'string' ||
    typeof org !== 'string' ||
    typeof iat !== 'number' ||
    typeof exp !== 'number'
  )
    return refused('invalid_token', 'This owner session is for another broker.');
  // A session without an id cannot be signed out.
  if (typeof jti !== 'string')
    return refused('invalid_token', 'This owner session was issued by an older release: sign in again.');
  if (exp * 1000 <= broker.clock()) return refused('token_expired', 'The session has expired: sign in again.');
  // The broker signed this itself, so its form needs no check.
  const provider = verified.payload.provider as ProviderSession | undefined;
  const marks = { id: jti, begunAt: Math.round(iat * 1000), provider: provider && { ...provider, isOurs: true } };
  const found = await findOwnerOfSession(broker.store.db, { organisationId: org, ownerId: sub, marks });
  if (!found) return refused('invalid_token', 'This owner no longer exists: sign in again.');
  if (found.ended) return refused('token_expired', 'The session was signed out: sign in again.');
  const { owner } = found;
  return {
    kind: 'owner',
    owner,
    organisationId: owner.organisation_id,
    role: owner.role,
    session: {
      id: jti,
      expiresAt: exp,
      marks,
      ...(signIn === 'oidc'
        ? { signIn, authTime: typeof authTime === 'number' ? authTime : undefined }
        : { signIn: 'local', authTime: iat }),
    },
  };
}

/** Returns the owner who is signed in in this browser; undefined when nobody is, or the session is not valid. */
export async function ownerInBrowser(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store' | 'keys'>,
  request: IncomingMessage,
): Promise<OwnerPrincipal | undefined> {
  const token = readSessionCookie(request, broker.baseUrl);
  const who = token === undefined ? undefined : await authenticateSession(broker, token);
  return who?.kind === 'owner' ? who : undefined;
}

/** Returns the browser's current session as a row of ended sessions; undefined when there is none, or it is not valid. */
export async function sessionInBrowser(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store' | 'keys'>,
  request: IncomingMessage,
): Promise<EndedSessionTable | undefined> {
  const who = await ownerInBrowser(broker, request);
  return who && endedForm(who);
}

/** The credential of the command line on this machine: generated at each start, in a 0600 file, hashed in memory. */
export type LocalCredential = { token: Secret; matches(token: string): LocalPrincipal | undefined };

export function makeLocalCredential(): LocalCredential {
  const { token, hash } = mintToken('local');
  return { token, matches: (text) => (isToken(text, 'local', hash) ? { kind: 'local' } : undefined) };
}
