/** An OpenID Connect provider on loopback, with invented people. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose';
import Provider from 'oidc-provider';
import { type Browser, formOf, type Visit } from '../browser/browser.ts';
import { newRsaPair } from '../rsa.ts';
import { afterFile } from '../runner/after-file.ts';

export type Person = { email?: string; email_verified?: unknown };

export type TestProvider = {
  issuer: string;
  people: Map<string, Person>;
  /** Requested paths. */
  seen: string[];
  /** The settings of a broker that uses it. */
  settings: Record<string, string>;
  /** Registers the broker at this address. */
  serve(baseUrl: string, options?: { claimsInToken?: boolean }): Promise<void>;
  /** Returns an assertion about a person, for the audience `agents`, valid for 5 minutes; `claims` override the defaults. */
  assertion(sub: string, claims?: JWTPayload, header?: Record<string, unknown>): Promise<string>;
  /** Signs with a new key from now on, and publishes only that one. */
  rotate(): Promise<void>;
  /** Stops answering at its port, until `up`. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** Signs a person in with this browser, starting at an address. Returns the final page. */
  signIn(browser: Browser, login: string, address: string): Promise<Visit>;
  /** Signs out the person who is signed in with this browser. */
  signOut(browser: Browser): Promise<Visit>;
};

export const CLIENT_ID = 'broker';
export const CLIENT_SECRET = 'secret-of-the-broker-0123456789-0123456789';

/** Starts the provider; it ends with the test file. Without a secret the broker is a public client of it. */
export async function startIdentityProvider(options: { secret?: boolean } = {}): Promise<TestProvider> {
  const secret = options.secret ?? true;
  let answer: ReturnType<Provider['callback']> | undefined;
  let configuration: Record<string, unknown> = {};
  const people = new Map<string, Person>();
  const seen: string[] = [];
  const listen = (port: number) => {
    const made = createServer((request, response) => {
      seen.push(new URL(request.url!, 'http://x').pathname);
      if (answer) answer(request, response);
      else response.writeHead(503).end();
    });
    return new Promise<typeof made>((resolve) => made.listen(port, '127.0.0.1', () => resolve(made)));
  };
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;

  let key: JWK = {};
  const begin = async () => {
    key = await privateJwk();
    const provider = new Provider(issuer, { ...configuration, jwks: { keys: [key] } });
    answer = provider.callback();
  };

  const provider: TestProvider = {
    issuer,
    people,
    seen,
    settings: {
      OIDC_ISSUER: issuer,
      OIDC_CLIENT_ID: CLIENT_ID,
      ...(secret && { OIDC_CLIENT_SECRET: CLIENT_SECRET }),
    },
    serve: async (baseUrl, { claimsInToken = false } = {}) => {
      configuration = {
        clients: [
          {
            client_id: CLIENT_ID,
            redirect_uris: [`${baseUrl}/console/oidc/callback`, `${baseUrl}/me/consent/signed-in`],
            grant_types: ['authorization_code'],
            response_types: ['code'],
            backchannel_logout_uri: `${baseUrl}/console/oidc/logout`,
            backchannel_logout_session_required: true,
            ...(secret
              ? { client_secret: CLIENT_SECRET, token_endpoint_auth_method: 'client_secret_basic' }
              : { token_endpoint_auth_method: 'none' }),
          },
        ],
        claims: { openid: ['sub'], email: ['email', 'email_verified'] },
        conformIdTokenClaims: !claimsInToken,
        features: { backchannelLogout: { enabled: true } },
        // The provider's own client reaches no loopback address, where the broker is.
        fetch: (address: string, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown }) =>
          fetch(address, options),
        pkce: { required: () => true },
        ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
        cookies: { keys: ['a test may know it'] },
        findAccount: (_context: unknown, sub: string) =>
          people.has(sub) ? { accountId: sub, claims: () => ({ sub, ...people.get(sub) }) } : undefined,
      };
      await begin();
    },
    rotate: begin,
    assertion: async (sub, claims = {}, header = {}) => {
      const iat = Math.floor(Date.now() / 1000);
      return await new SignJWT({ iss: issuer, aud: 'agents', sub, iat, exp: iat + 300, ...claims })
        .setProtectedHeader({ alg: 'RS256', kid: key.kid!, ...header })
        .sign(await importJWK(key, 'RS256'));
    },
    down: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    up: async () => {
      server = await listen(port);
    },
    signIn: async (browser, login, address) => {
      let visit = await browser.get(address);
      for (let step = 0; step < 3 && visit.url.startsWith(`${issuer}/interaction/`); step++) {
        const { action, fields } = formOf(visit);
        visit = await browser.post(action, { ...fields, ...(fields.prompt === 'login' && { login, password: 'x' }) });
      }
      return visit;
    },
    signOut: async (browser) => {
      const { action, fields } = formOf(await browser.get(`${issuer}/session/end`));
      return await browser.post(action, { ...fields, logout: 'yes' });
    },
  };
  afterFile(() => {
    server.closeAllConnections();
    server.close();
  });
  return provider;
}

async function privateJwk(): Promise<JWK> {
  return { ...(await exportJWK(newRsaPair().privateKey)), alg: 'RS256', use: 'sig', kid: crypto.randomUUID() };
}
