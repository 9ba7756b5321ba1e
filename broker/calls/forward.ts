/** An allowed call on its way: the credential is opened, put in, sent, and looked for in what comes back. */
import type { Decided } from '../audit/outcome.ts';
import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import type { ReadAnswer } from '../egress/answer.ts';
import { type CredentialPatterns, makeCredentialPatterns } from '../egress/credential-patterns.ts';
import { placementOf } from '../egress/credential-placement.ts';
import { StreamedCredential } from '../egress/credential-stream.ts';
import { buildRequest, type RestPlatform } from '../egress/rest.ts';
import type { ConnectionFacts } from '../facts/facts.ts';
import { type OAuthCredential, readCredential } from '../oauth-client/credential.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { JsonObject, Verdict } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { type Call, familyOf } from './call.ts';
import { forwardStream, type Streamed } from './forward-stream.ts';

export type Forwarded =
  /**
   * `lapsed`: the credential works still, and will soon be over for good. `justIssued`: of a 401 to a token that the
   * authorization server had just issued.
   */
  | { kind: 'answer'; status: number; read: ReadAnswer<string | Buffer>; lapsed?: boolean; justIssued?: boolean }
  | {
      kind: 'refused_locally';
      error: 'endpoint_refused' | 'body_refused' | 'credential_malformed' | 'credential_over';
      detail: string;
    }
  | { kind: 'unreachable'; code: string; detail: string; sent: boolean }
  /** The answer was passed on, as far as it came. */
  | { kind: 'streamed'; status: number; streamed: Streamed }
  /** The tool of an MCP server is not the one that was accepted. */
  | { kind: 'quarantined'; detail: string }
  /** While the call waited for a token it was forbidden. */
  | { kind: 'denied_meanwhile'; verdict: Extract<Verdict, { kind: 'deny' }>; decided: Decided };

/** What can be concluded without another decision. */
export type Concluded = Exclude<Forwarded, { kind: 'quarantined' | 'denied_meanwhile' }>;

export const isConcluded = (forwarded: Forwarded): forwarded is Concluded =>
  forwarded.kind !== 'quarantined' && forwarded.kind !== 'denied_meanwhile';

/** How a platform's manifest says that a request is written. */
export function restPlatform(manifest: Manifest): RestPlatform {
  return {
    baseUrl: manifest.base_url,
    wholeAddress: manifest.kind !== 'rest',
    headers: manifest.headers,
    defaultHeaders: manifest.default_headers,
    forbiddenHeaders: manifest.forbidden_headers,
    auth: placementOf(manifest.auth),
    body: manifest.body,
  };
}

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

/** Sends the call once. Whatever comes back, the credential is not in it. */
export async function forward(
  broker: Broker,
  manifest: Manifest,
  call: Call,
  connection: ConnectionFacts,
  credential: Credential,
): Promise<Forwarded> {
  const built = buildRequest(
    restPlatform(manifest),
    {
      method: call.action.method,
      endpoint: { path: call.path, query: call.query },
      headers: call.headers,
      body: call.action.data as JsonObject | undefined,
    },
    credential.secret,
  );
  if (!built.ok) return { kind: 'refused_locally', error: built.error, detail: built.detail };
  const family = familyOf(call.who);
  const { taker } = call;
  if (taker !== undefined)
    return await forwardStream(
      broker.outbound,
      call,
      taker,
      { ...built.request, connectionKey: connection.id },
      credential,
    );
  const answer = await broker.outbound.send({
    ...built.request,
    connectionKey: connection.id,
    family,
    lease: call.lease,
  });
  if (answer.kind === 'unreachable')
    return { kind: 'unreachable', code: answer.code, detail: answer.detail, sent: answer.sent };
  const read = await broker.outbound.read(answer, credential.patterns, family);
  return { kind: 'answer', status: answer.status, read };
}
