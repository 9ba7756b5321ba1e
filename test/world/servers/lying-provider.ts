/** A hostile OpenID Connect provider whose behaviour a test sets: it signs anybody in, immediately, as anything. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { ISSUER_ALGORITHMS } from '../../../broker/crypto/issuer-algorithms.ts';
import { listenOnLoopback } from '../listen.ts';
import { newRsaPair } from '../rsa.ts';

export const CLIENT_ID = 'broker';

export type Signer = {
  alg: string;
  kid: string;
  privateKey: Parameters<SignJWT['sign']>[0];
  publicJwk: JWK;
};

export type LyingProvider = {
  issuer: string;
  settings: Record<string, string>;
  /** Overridden answers of `/.well-known/openid-configuration`, `/token`, `/jwks` and `/userinfo`, by path. */
  answers: Map<string, (request: IncomingMessage, response: ServerResponse, body: string) => void>;
  /** Received requests, as method and path. */
  seen: string[];
  signer: Signer;
  /** Its published keys. */
  keys: JWK[];
  /** Changes to the next ID tokens: claims (undefined removes one), or the whole token. */
  claims: Record<string, unknown>;
  token: ((honest: Record<string, unknown>) => Promise<string> | string) | undefined;
  /** Number of meaningless characters added to each answer of the path, which is otherwise correct. */
  padding: Map<string, number>;
  /** Adds or removes parameters of the callback. */
  callback: (parameters: URLSearchParams) => void;
  /** Changes to its discovery document. */
  metadata: Record<string, unknown>;
  /** Resets all overrides. */
  beHonest(): void;
  /** A token with these claims, signed. */
  sign(claims: Record<string, unknown>, header?: Record<string, unknown>, signer?: Signer): Promise<string>;
  /** Returns the claims of a valid ID token issued now. */
  honest(different?: Record<string, unknown>): Record<string, unknown>;
  clock: () => number;
};

export async function makeSigner(alg = 'RS256', kid: string = crypto.randomUUID()): Promise<Signer> {
  const isRsa = /^[RP]S/.test(alg);
  const { privateKey, publicKey } = isRsa ? newRsaPair() : await generateKeyPair(alg, { extractable: true });
  return { alg, kid, privateKey, publicJwk: { ...(await exportJWK(publicKey)), alg, use: 'sig', kid } };
}

/** Starts the provider; it ends with the test file. */
export async function startLyingProvider(): Promise<LyingProvider> {
  const codes = new Map<string, string>();
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const url = new URL(request.url!, issuer);
    provider.seen.push(`${request.method} ${url.pathname}`);
    const told = provider.answers.get(url.pathname);
    if (told) return told(request, response, body);
    const json = (value: object, status = 200) => {
      const padding = provider.padding.get(url.pathname);
      const whole = padding === undefined ? value : { ...value, padding: 'x'.repeat(padding) };
      return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
    };
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json(metadata());
      case '/jwks':
        return json({ keys: provider.keys });
      case '/auth': {
        const code = crypto.randomUUID();
        codes.set(code, url.searchParams.get('nonce') ?? '');
        const parameters = new URLSearchParams({ code, state: url.searchParams.get('state')!, iss: issuer });
        provider.callback(parameters);
        return response.writeHead(302, { location: `${url.searchParams.get('redirect_uri')}?${parameters}` }).end();
      }
      case '/token': {
        const nonce = codes.get(new URLSearchParams(body).get('code') ?? '');
        if (nonce === undefined) return json({ error: 'invalid_grant' }, 400);
        const honest = provider.honest({ nonce, ...provider.claims });
        const token = provider.token ? await provider.token(honest) : await provider.sign(honest);
        return json({ access_token: 'opaque', token_type: 'bearer', expires_in: 60, id_token: token });
      }
      default:
        return json({ error: 'not_found' }, 404);
    }
  });
  const port = await listenOnLoopback(server);
  const issuer = `http://127.0.0.1:${port}`;
  const metadata = () => ({
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...ISSUER_ALGORITHMS, 'HS256', 'HS512', 'none'],
    authorization_response_iss_parameter_supported: true,
    ...provider.metadata,
  });
  const first = await makeSigner();
  const provider: LyingProvider = {
    issuer,
    settings: { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: CLIENT_ID },
    answers: new Map(),
    seen: [],
    signer: first,
    keys: [first.publicJwk],
    claims: {},
    token: undefined,
    padding: new Map(),
    metadata: {},
    callback: () => {},
    clock: Date.now,
    beHonest: () => {
      provider.answers.clear();
      provider.padding.clear();
      provider.claims = {};
      provider.metadata = {};
      provider.token = undefined;
      provider.callback = () => {};
      provider.clock = Date.now;
    },
    sign: (claims, header = {}, signer = provider.signer) =>
      new SignJWT(claims).setProtectedHeader({ alg: signer.alg, kid: signer.kid, ...header }).sign(signer.privateKey),
    honest: (different = {}) => {
      const iat = Math.floor(provider.clock() / 1000);
      const all = { iss: issuer, sub: 'ann', aud: CLIENT_ID, iat, exp: iat + 300, ...different };
      return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    },
  };
  return provider;
}
