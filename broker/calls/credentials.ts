import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import { type CredentialPatterns, type MadeOf, makeCredentialPatterns } from '../egress/credential-search/patterns.ts';
import { StreamedCredential } from '../egress/credential-search/stream.ts';
import { isSigning } from '../egress/sign-request.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import { INSTALLATION_ID } from '../platforms/auth.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { readSecretParts, secretPartsOf } from '../platforms/secret-parts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import type { TokenRowPlace } from '../store/oauth-tokens.ts';
import { type AccessToken, readCredential } from '../token-source/access-token.ts';
import type { Given } from '../token-source/token-request.ts';

/** An opened credential, with the patterns to find it in answers. `token`: set when it is an access token that may be replaced. */
export type Credential = {
  secret: Secret;
  patterns: CredentialPatterns;
  streamed: StreamedCredential;
  token?: AccessToken;
};

export type Credentials = {
  /**
   * Opens the credential of a connection. Undefined: the connection has none. `unreadable`: the stored bytes were altered, or belong to
   * another row or key.
   */
  open(
    organisationId: string,
    connection: Pick<ConnectionFacts, 'id' | 'credential' | 'personTokens'>,
    auth: Manifest['auth'],
  ): Credential | Given | 'unreadable' | undefined;
  /** Returns an access token that was issued without a stored credential as the credential of a call. */
  ofToken(token: AccessToken): Credential;
};

/** The row that holds the credential in use: the connection's own, or one person's tokens. */
export const holderOf = (
  organisationId: string,
  { id, personTokens }: Pick<ConnectionFacts, 'id' | 'personTokens'>,
): TokenRowPlace =>
  personTokens === undefined
    ? { table: 'connections', organisationId, id }
    : { table: 'person_tokens', organisationId, id: personTokens };

const MIB = 1024 * 1024;
const CACHE_SIZE = 1_000;
const CACHE_BYTES = 48 * MIB;
/** An App has many more tokens than connections. */
const CACHED_TOKENS = 256;
const TOKENS_BYTES = 16 * MIB;
/** Estimated memory of a prepared search, as measured: 37 KiB for a credential of 40 bytes, 131 KiB for one of 1,000. */
const bytesOf = (secret: Secret): number => 40 * 1024 + 100 * secret.reveal().length;

/**
 * Opens credentials, in memory only. The cache key contains the sealed bytes, so a replaced, moved or altered credential is opened (and
 * checked) again. They are cached because preparing the search for one is too slow to do per call.
 */
export function credentialOpener(broker: Pick<Broker, 'log' | 'vault'>): Credentials {
  const kept = recentlyUsed<Credential | Given>(CACHE_SIZE, CACHE_BYTES);
  const tokens = recentlyUsed<Credential>(CACHED_TOKENS, TOKENS_BYTES);
  return {
    open: (organisationId, connection, auth) => {
      if (connection.credential === null) return undefined;
      const { buffer, byteOffset, byteLength } = connection.credential;
      const sealed = Buffer.from(buffer, byteOffset, byteLength);
      const { table, id: rowId } = holderOf(organisationId, connection);
      const key = `${organisationId}/${table}/${rowId}/${auth.type}/${sealed.toString('latin1')}`;
      const found = kept.get(key);
      if (found) return found;
      const place = { table, column: 'credential', organisationId, rowId } as const;
      let text: string;
      let token: AccessToken | undefined;
      try {
        text = broker.vault.open(place, sealed).toString('utf8');
        token = readCredential(text);
      } catch (error) {
        if (!(error instanceof SealError)) throw error;
        broker.log.error({ err: error, security: true, organisation: organisationId }, 'a credential cannot be opened');
        return 'unreadable';
      }
      const given = givenIn(auth, text, sha256Hex(sealed));
      if (given === 'unreadable') return given;
      const made = given ? undefined : madeOf(auth, text);
      const opened =
        given ?? ({ ...searched(token?.token ?? new Secret(text), made ?? {}), ...(token && { token }) } as const);
      // Parts that this `auth` cannot read are not searched for: with a corrected one, of the same type, they must be.
      if (given || made) kept.set(key, opened, 'secret' in opened ? bytesOf(opened.secret) : 0);
      return opened;
    },
    ofToken: (token) => {
      const found = tokens.get(token.id);
      if (found) return found;
      const made = { ...searched(token.token, {}), token };
      tokens.set(token.id, made, bytesOf(token.token));
      return made;
    },
  };
}

/**
 * Returns what is stored in place of a credential (an installation id, or the parts of a client or service account); undefined when the
 * text is the credential itself. `unreadable`: it was stored when the platform took another kind of credential. `given`: hash of the sealed
 * text.
 */
function givenIn(auth: Manifest['auth'], text: string, given: string): Given | 'unreadable' | undefined {
  // The installation id becomes part of a URL.
  if (auth.type === 'app') return INSTALLATION_ID.test(text) ? { installationId: text, given } : 'unreadable';
  if (auth.type !== 'client_credentials' && auth.type !== 'service_account') return undefined;
  const read = readSecretParts(auth, text);
  if (!read.ok) return 'unreadable';
  const parts = Object.entries(read.parts).map(([name, value]) => [name, new Secret(value)] as const);
  return { parts: Object.fromEntries(parts), given };
}

/**
 * A signing key is never sent, but the platform may know it: its secret parts are removed from answers. Undefined: the secret does not have the parts of
 * this `auth`, and no request can be signed with it.
 */
function madeOf(auth: Manifest['auth'], text: string): MadeOf | undefined {
  if (!isSigning(auth)) return { basic: auth.type === 'basic' };
  const read = readSecretParts(auth, text);
  if (!read.ok) return undefined;
  const hidden = secretPartsOf(auth)?.flatMap(({ name, open }) => (open ? [] : (read.parts[name] ?? [])));
  return { parts: hidden?.map((part) => new Secret(part)) };
}

const searched = (secret: Secret, madeOf: MadeOf) => ({
  secret,
  patterns: makeCredentialPatterns(secret, madeOf),
  streamed: new StreamedCredential(secret, madeOf),
});
