/**
 * A platform on loopback with its own token endpoint, as strict as the RFCs: client credentials (RFC 6749 §4.4) with Basic or in the form,
 * and JWT assertions of a service account (RFC 7523), whose signature, audience and times it verifies.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { jwtVerify } from 'jose';
import { listenOnLoopback } from '../world/listen.ts';
import { newRsaPair } from '../world/rsa.ts';

/** Contains characters that a form encodes (RFC 6749 §2.3.1). */
export const CLIENT_ID = 'reports:client/1';
export const CLIENT_SECRET = 's3cret +of%the client&';
export const ACCOUNT = 'robot@acme.iam.example';
export const KEY_ID = 'key-1';

export type TokenPlatform = {
  url: string;
  address: string;
  /** The account's private key, in PKCS#8. */
  pem: string;
  /** Token requests with valid authentication, as form fields and, for an assertion, its claims. */
  granted: { method: string; form: Record<string, string>; claims?: Record<string, unknown> }[];
  /** Tokens that the platform accepts, with their expiry. */
  issued: Map<string, number>;
  everIssued: Set<string>;
  assertions: Set<string>;
  calls: string[];
  slowMs: number;
  /** `expires_in`; undefined: omitted. */
  expiresIn: number | string | undefined;
  /** Replaces the answer of the token endpoint. */
  instead: { status: number; body: string } | undefined;
  now: () => number;
  reset(): void;
};

/** Starts a platform, which stops with the test file. */
export async function startTokenPlatform(): Promise<TokenPlatform> {
  const { publicKey, privateKey } = newRsaPair();

  const prove = async (authorization: string | undefined, form: Record<string, string>) => {
    if (form.grant_type === 'client_credentials') {
      const basic = /^Basic (.+)$/.exec(authorization ?? '')?.[1];
      const pair = basic === undefined ? undefined : Buffer.from(basic, 'base64').toString().split(':');
      const [id, secret] = pair
        ? pair.map((part) => new URLSearchParams(`x=${part}`).get('x'))
        : [form.client_id, form.client_secret];
      if (id !== CLIENT_ID || secret !== CLIENT_SECRET) return { error: 'invalid_client', status: 401 };
      return { method: basic === undefined ? 'post' : 'basic' };
    }
    if (form.grant_type !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return { error: 'unsupported_grant_type', status: 400 };
    platform.assertions.add(form.assertion ?? '');
    try {
      const { payload, protectedHeader } = await jwtVerify(form.assertion ?? '', publicKey, {
        algorithms: ['RS256'],
        issuer: ACCOUNT,
        audience: `${platform.url}/token`,
        currentDate: new Date(platform.now()),
        requiredClaims: ['iat', 'exp', 'scope'],
      });
      if (payload.exp! - payload.iat! > 3600 || payload.iat! * 1000 > platform.now()) throw new Error('times');
      return { method: 'assertion', claims: { ...payload, kid: protectedHeader.kid } };
    } catch {
      return { error: 'invalid_grant', status: 400 };
    }
  };

  const server = createServer(async (request, response) => {
    const received = await text(request);
    const json = (status: number, value: unknown) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const { pathname } = new URL(request.url ?? '', 'http://x');
    if (pathname === '/token') {
      const form = Object.fromEntries(new URLSearchParams(received));
      const proof = await prove(request.headers.authorization, form);
      if (platform.instead) return void response.writeHead(platform.instead.status).end(platform.instead.body);
      // Echoes the request, as some servers do.
      if ('error' in proof) return json(proof.status!, { error: proof.error, error_description: JSON.stringify(form) });
      const { assertion, ...rest } = form;
      platform.granted.push({ ...proof, form: rest });
      if (platform.slowMs > 0) await new Promise((resolve) => setTimeout(resolve, platform.slowMs));
      const token = `tok_${randomBytes(18).toString('hex')}`;
      const life = platform.expiresIn === undefined ? 3600 : Number(platform.expiresIn);
      platform.issued.set(token, platform.now() + life * 1000);
      platform.everIssued.add(token);
      return json(200, {
        access_token: token,
        token_type: 'Bearer',
        ...(platform.expiresIn !== undefined && { expires_in: platform.expiresIn }),
      });
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    platform.calls.push(token);
    if ((platform.issued.get(token) ?? 0) <= platform.now()) return json(401, { error: 'who are you' });
    return json(200, { echo: `you sent ${token}` });
  });
  const port = await listenOnLoopback(server);
  const platform: TokenPlatform = {
    url: `http://127.0.0.1:${port}`,
    address: `127.0.0.1:${port}`,
    pem: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
    granted: [],
    issued: new Map(),
    everIssued: new Set(),
    assertions: new Set(),
    calls: [],
    slowMs: 0,
    expiresIn: 3600,
    instead: undefined,
    now: () => Date.now(),
    reset: () => {
      platform.granted.length = 0;
      platform.issued.clear();
      platform.calls.length = 0;
      platform.slowMs = 0;
      platform.expiresIn = 3600;
      platform.instead = undefined;
    },
  };
  return platform;
}
