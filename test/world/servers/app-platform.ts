/**
 * A code host on loopback that implements Apps as strictly as GitHub: it verifies the App's signature, issues tokens that are bound to an
 * installation, to repositories and to permissions, and enforces these bounds.
 */
import { type KeyObject, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { jwtVerify } from 'jose';
import { listenOnLoopback } from '../listen.ts';
import { newRsaPair } from '../rsa.ts';

export const APP_ID = '4711';
export const INSTALLATION = '42000001';

type Exchange = { installation: string; repositories?: string[]; permissions?: Record<string, string> };
type Issued = Exchange & { expiresAt: number };
type Installed = {
  account: string;
  repositories: string[];
  permissions: Record<string, string>;
  suspended: boolean;
};
type Told = { status: number; body: string; headers?: Record<string, string> };

export type AppPlatform = {
  url: string;
  /** `127.0.0.1:port`, for AGENT_BROKER_ALLOW_PRIVATE. */
  address: string;
  /** The App's private key in GitHub's format (PKCS#1). */
  pem: string;
  installations: Map<string, Installed>;
  /** Token exchanges with a valid signature. */
  exchanges: Exchange[];
  /** Issued tokens, oldest first. */
  issued: Map<string, Issued>;
  /** Revoked tokens, in order. */
  revoked: string[];
  /** All issued tokens, and all received signatures, since the start. */
  everIssued: Set<string>;
  jwts: Set<string>;
  /** Calls of its API, as method and path, with the token. */
  calls: { call: string; token: string }[];
  /** Delay of an exchange, in milliseconds. */
  slowMs: number;
  lifeMs: number;
  /** Overrides the answer of an exchange or of an API call; undefined: the normal answer. */
  instead: ((path: string) => Told | undefined) | undefined;
  now: () => number;
  /** Replaces the key, deleting the old one. Returns the new one. */
  rotate(): string;
  /** Resets the installations to those at the start. */
  reset(): void;
};

/** GitHub's own error texts. */
const SAYS = {
  decode: { message: 'A JSON web token could not be decoded', status: '401' },
  suspended: { message: 'This installation has been suspended', status: '403' },
  missing: { message: 'Not Found', status: '404' },
  permission: { message: 'The permissions requested are not granted to this installation.', status: '422' },
  repository: {
    message: 'There is at least one repository that does not exist or is not accessible to the parent installation.',
    status: '422',
  },
  integration: { message: 'Resource not accessible by integration', status: '403' },
  credentials: { message: 'Bad credentials', status: '401' },
};

const RANK: Record<string, number> = { read: 1, write: 2, admin: 3 };
const AREAS: Record<string, string> = {
  contents: 'contents',
  git: 'contents',
  issues: 'issues',
  pulls: 'pull_requests',
};

/** Starts the platform; it ends with the test file. */
export async function startAppPlatform(): Promise<AppPlatform> {
  let publicKey: KeyObject;
  const newKey = (): string => {
    const pair = newRsaPair();
    publicKey = pair.publicKey;
    return pair.privateKey.export({ format: 'pem', type: 'pkcs1' }) as string;
  };
  const say = (response: ServerResponse, { message, status }: { message: string; status: string }) =>
    response.writeHead(Number(status), { 'content-type': 'application/json' }).end(JSON.stringify({ message, status }));

  const isSigned = async (request: IncomingMessage): Promise<boolean> => {
    const jwt = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    platform.jwts.add(jwt);
    try {
      const { payload } = await jwtVerify(jwt, publicKey, {
        algorithms: ['RS256'],
        issuer: APP_ID,
        currentDate: new Date(platform.now()),
        requiredClaims: ['iat', 'exp', 'iss'],
      });
      return payload.exp! - payload.iat! <= 600 && payload.iat! * 1000 <= platform.now();
    } catch {
      return false;
    }
  };

  const exchange = async (request: IncomingMessage, response: ServerResponse, id: string, body: string) => {
    if (!(await isSigned(request))) return say(response, SAYS.decode);
    const asked = (body === '' ? {} : JSON.parse(body)) as Omit<Exchange, 'installation'>;
    platform.exchanges.push({ installation: id, ...asked });
    if (platform.slowMs > 0) await new Promise((resolve) => setTimeout(resolve, platform.slowMs));
    const installed = platform.installations.get(id);
    if (!installed) return say(response, SAYS.missing);
    if (installed.suspended) return say(response, SAYS.suspended);
    const allowed = (name: string) => RANK[installed.permissions[name] ?? (name === 'metadata' ? 'read' : '')] ?? 0;
    if (Object.entries(asked.permissions ?? {}).some(([name, access]) => allowed(name) < RANK[access]!))
      return say(response, SAYS.permission);
    const repositories = asked.repositories?.map((name) => `${installed.account}/${name}`);
    if (repositories?.some((name) => !installed.repositories.includes(name.toLowerCase())))
      return say(response, SAYS.repository);
    const token = `ghs_${randomBytes(18).toString('hex')}`;
    const expiresAt = platform.now() + platform.lifeMs;
    platform.everIssued.add(token);
    platform.issued.set(token, {
      installation: id,
      ...(repositories && { repositories }),
      permissions: asked.permissions ?? installed.permissions,
      expiresAt,
    });
    return response.writeHead(201, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        token,
        // GitHub's format, without milliseconds.
        expires_at: new Date(expiresAt).toISOString().replace(/\.\d+Z$/, 'Z'),
        permissions: { ...asked.permissions, metadata: 'read' },
        repository_selection: repositories ? 'selected' : 'all',
        ...(repositories && { repositories: repositories.map((full_name) => ({ full_name })) }),
      }),
    );
  };

  const api = (request: IncomingMessage, response: ServerResponse, path: string) => {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    platform.calls.push({ call: `${request.method} ${path}`, token });
    const found = platform.issued.get(token);
    if (found && request.method === 'DELETE' && path === '/installation/token') {
      platform.issued.delete(token);
      platform.revoked.push(token);
      return response.writeHead(204).end();
    }
    if (!found || found.expiresAt <= platform.now()) return say(response, SAYS.credentials);
    const [, , owner = '', repo = '', part = ''] = path.split('/');
    const name = `${owner}/${repo}`.toLowerCase();
    const reach = found.repositories ?? platform.installations.get(found.installation)?.repositories ?? [];
    if (path.startsWith('/repos/') && !reach.some((one) => one.toLowerCase() === name))
      return say(response, SAYS.missing);
    const area = AREAS[part];
    const workflows = path.includes('/.github/workflows/') && request.method !== 'GET';
    const needed = request.method === 'GET' ? 1 : 2;
    if (area && (RANK[found.permissions?.[area] ?? ''] ?? 0) < needed) return say(response, SAYS.integration);
    if (workflows && found.permissions?.workflows !== 'write') return say(response, SAYS.integration);
    return response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ full_name: name, echo: `token ${token}` }));
  };

  const isInstallation = async (path: string, request: IncomingMessage) =>
    path.startsWith('/app/installations/') &&
    platform.installations.has(path.split('/').at(-1) ?? '') &&
    (await isSigned(request));

  const server = createServer(async (request, response) => {
    const received = await text(request);
    // Also at the path prefix of GitHub Enterprise Server.
    const pathname = new URL(request.url ?? '', 'http://x').pathname.replace(/^\/api\/v3(?=\/|$)/, '');
    const told = platform.instead?.(pathname);
    if (told) return void response.writeHead(told.status, told.headers ?? {}).end(told.body);
    const [, id] = /^\/app\/installations\/([^/]+)\/access_tokens$/.exec(pathname) ?? [];
    if (id !== undefined && request.method === 'POST') await exchange(request, response, id, received);
    else if (await isInstallation(pathname, request)) {
      const { account, permissions } = platform.installations.get(pathname.split('/').at(-1) ?? '')!;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ account: { login: account }, repository_selection: 'selected', permissions }));
    } else api(request, response, pathname);
  });
  const port = await listenOnLoopback(server);
  const platform: AppPlatform = {
    url: `http://127.0.0.1:${port}`,
    address: `127.0.0.1:${port}`,
    pem: newKey(),
    installations: new Map(),
    exchanges: [],
    issued: new Map(),
    revoked: [],
    everIssued: new Set(),
    jwts: new Set(),
    calls: [],
    slowMs: 0,
    lifeMs: 3600_000,
    instead: undefined,
    now: () => Date.now(),
    rotate: () => {
      platform.pem = newKey();
      return platform.pem;
    },
    reset: () => {
      platform.installations.set(INSTALLATION, {
        account: 'acme',
        repositories: ['acme/app', 'acme/web'],
        permissions: {
          contents: 'write',
          issues: 'write',
          metadata: 'read',
          pull_requests: 'write',
          workflows: 'write',
        },
        suspended: false,
      });
      platform.exchanges.length = 0;
      platform.calls.length = 0;
      platform.issued.clear();
      platform.revoked.length = 0;
      platform.slowMs = 0;
      platform.lifeMs = 3600_000;
      platform.instead = undefined;
    },
  };
  platform.reset();
  return platform;
}
