import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import { type CredentialPatterns, makeCredentialPatterns } from '../egress/credential-patterns.ts';
import { StreamedCredential } from '../egress/credential-stream.ts';
import type { ConnectionFacts } from '../facts/facts.ts';
import { type OAuthCredential, readCredential } from '../oauth-client/credential.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';

/** A credential that was opened, with the search for it in answers. `oauth`: it is a token that may be refreshed. */
export type Credential = {
  secret: Secret;
  patterns: CredentialPatterns;
  streamed: StreamedCredential;
  oauth?: OAuthCredential;
};

export type Credentials = {
  /** undefined: the connection has none. `unreadable`: what is stored was changed, or belongs to another row or key. */
  open(organisationId: string, connection: ConnectionFacts, basic: boolean): Credential | 'unreadable' | undefined;
};

const KEPT = 1_000;

/**
 * Opens credentials, in memory only. Kept by the very bytes that are stored, so that a replaced, moved or altered one is
 * opened (and checked) anew; preparing the search for one costs more than a call should.
 */
export function credentialOpener(broker: Broker): Credentials {
  const kept = recentlyUsed<Credential>(KEPT);
  return {
    open: (organisationId, connection, basic) => {
      if (connection.credential === null) return undefined;
      const { buffer, byteOffset, byteLength } = connection.credential;
      const sealed = Buffer.from(buffer, byteOffset, byteLength);
      const key = `${organisationId}/${connection.id}/${basic}/${sealed.toString('latin1')}`;
      const found = kept.get(key);
      if (found) return found;
      const place = { table: 'connections' as const, organisationId, rowId: connection.id };
      let secret: Secret;
      let oauth: OAuthCredential | undefined;
      try {
        const text = broker.vault.open(place, sealed).toString('utf8');
        oauth = readCredential(text);
        secret = oauth?.token ?? new Secret(text);
      } catch (error) {
        if (!(error instanceof SealError)) throw error;
        broker.log.error({ err: error, security: true, organisation: organisationId }, 'a credential cannot be opened');
        return 'unreadable';
      }
      const opened = {
        secret,
        patterns: makeCredentialPatterns(secret, { basic }),
        streamed: new StreamedCredential(secret, { basic }),
        ...(oauth && { oauth }),
      };
      kept.set(key, opened);
      return opened;
    },
  };
}
