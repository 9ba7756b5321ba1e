/** The package brings no types. What we use of it. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export type Metadata = {
    client_id?: string;
    client_name?: string;
    client_uri?: string;
    client_secret?: string;
    client_secret_expires_at?: number;
    jwks_uri?: string;
    jwks?: unknown;
    sector_identifier_uri?: string;
    redirect_uris?: string[];
    scope?: string;
    token_endpoint_auth_method?: string;
    application_type?: string;
    grant_types?: string[];
    response_types?: string[];
  };
  export type Client = {
    clientId: string;
    clientName?: string;
    redirectUris: string[];
    grantTypeAllowed(type: string): boolean;
    metadata(): Metadata;
  };
  export type Interaction = {
    uid: string;
    exp: number;
    params: Record<string, string | undefined>;
    prompt: { name: string };
    /** What was decided; undefined: nothing yet. */
    result?: Record<string, unknown>;
    returnTo: string;
  };
  export type Grant = {
    addResourceScope(resource: string, scope: string): void;
    /** It was asked for, and the answer is no. */
    rejectResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  };
  export type TokenContext = {
    oidc: { route: string; client?: Client; entities: { RefreshToken?: { grantId: string } } };
  };
  /** Of a request to revoke whose client is known. */
  export type RevocationContext = {
    oidc: { client: Client; params: { token: string } };
    status: number;
    body: string;
  };
  /** What the library stores with, one for each of its models. */
  export type Adapter = {
    upsert(id: string, payload: Record<string, unknown>, expiresIn?: number): Promise<void>;
    find(id: string): Promise<Record<string, unknown> | undefined>;
    findByUid(uid: string): Promise<undefined>;
    findByUserCode(userCode: string): Promise<undefined>;
    consume(id: string): Promise<void>;
    destroy(id: string): Promise<void>;
    revokeByGrantId(grantId: string): Promise<void>;
  };

  // biome-ignore lint/style/noDefaultExport: it is the package's.
  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    /** Of the request that is being answered; `ip` is Express's. */
    static get ctx(): { req: IncomingMessage & { ip?: string } } | undefined;
    proxy: boolean;
    Client: { find(id: string): Promise<Client | undefined>; prototype: { redirectUriAllowed(uri: string): boolean } };
    Grant: new (properties: {
      jti: string;
      accountId: string;
      clientId: string;
    }) => Grant;
    use(middleware: (context: RevocationContext, next: () => Promise<void>) => Promise<void>): this;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
      options?: { mergeWithLastSubmission?: boolean },
    ): Promise<string>;
    on(event: string, listener: (...details: never[]) => void): void;
  }

  class LibraryError extends Error {
    error: string;
    error_description?: string;
    statusCode: number;
    constructor(description?: string);
  }
  export const errors: {
    InvalidGrant: typeof LibraryError;
    InvalidTarget: typeof LibraryError;
    InvalidRedirectUri: typeof LibraryError;
    InvalidClientMetadata: typeof LibraryError;
    InvalidClientAuth: typeof LibraryError;
    UnsupportedTokenType: typeof LibraryError;
    InvalidClient: typeof LibraryError;
    SessionNotFound: typeof LibraryError;
    OIDCProviderError: typeof LibraryError;
  };
}
