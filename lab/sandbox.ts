/**
 * The sandbox platform: a small real REST server on loopback, with issues, mail and payments to refund, so that every feature can be tried without an account
 * anywhere. All data is in memory and bounded; nothing leaves the machine. `SANDBOX_MANIFEST` and `SANDBOX_POLICY` have the form of governance.yaml.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { issueRoutes } from './sandbox/issues.ts';
import { listenTo } from './sandbox/listen.ts';
import { mailRoutes } from './sandbox/mail.ts';
import { refundRoutes } from './sandbox/refunds.ts';
import { seedWorld } from './sandbox/world.ts';

/** The platform, in the shape of an entry of `platforms` in governance.yaml. A server on another port overrides `base_url`. */
export const SANDBOX_MANIFEST = {
  kind: 'rest',
  base_url: 'http://127.0.0.1:8790',
  auth: { type: 'bearer' },
  scopes: {
    'sandbox:issues.read': ['GET /issues', 'GET /issues/*', 'GET /issues/*/comments'],
    'sandbox:issues.write': ['POST /issues', 'PATCH /issues/*', 'POST /issues/*/comments'],
    'sandbox:issues.delete': ['DELETE /issues/*'],
    'sandbox:mail.read': ['GET /mail', 'GET /mail/*'],
    'sandbox:mail.send': ['POST /mail'],
    'sandbox:mail.delete': ['DELETE /mail/*'],
    'sandbox:payments.read': ['GET /payments', 'GET /refunds', 'GET /refunds/*'],
    'sandbox:refunds.create': ['POST /refunds'],
  },
  recipients: { 'POST /mail': ['/to', '/to/*', '/cc', '/cc/*'] },
  sentences: {
    'GET /issues': 'list the issues',
    'GET /issues/*': 'read issue {1}',
    'POST /issues': 'create an issue[: *{/title}*]',
    'PATCH /issues/*': 'change issue **{1}**',
    'POST /issues/*/comments': 'comment on issue **{1}**[: *{/text}*]',
    'DELETE /issues/*': 'delete issue **{1}**',
    'POST /mail': 'send mail[ to **{recipients}**][: *{/subject}*]',
    'DELETE /mail/*': 'delete mail **{1}**',
    'POST /refunds': 'refund **{amount /amount /currency}** of payment {/payment}',
  },
};

/** The policy, in the shape of an entry of `policies`: reads and issue writes are allowed, mail and refunds need an approval, deletes are denied. */
export const SANDBOX_POLICY = {
  rules: [
    { name: 'reads', effect: 'allow', platforms: ['sandbox'], scopes: ['sandbox:*.read'] },
    { name: 'issue-writes', effect: 'allow', platforms: ['sandbox'], scopes: ['sandbox:issues.write'] },
    { name: 'mail-waits', effect: 'require_approval', platforms: ['sandbox'], scopes: ['sandbox:mail.send'] },
    { name: 'refunds-wait', effect: 'require_approval', platforms: ['sandbox'], scopes: ['sandbox:refunds.create'] },
    { name: 'no-deletes', effect: 'deny', platforms: ['sandbox'], methods: ['DELETE'] },
  ],
};

export type SandboxOptions = {
  /** 0, the default: any free port. */
  port?: number;
  host?: '127.0.0.1';
  /** The bearer that callers must present: 16 to 512 visible ASCII characters (RFC 6750 section 2.1). */
  token: string;
  /** Milliseconds since the Unix epoch. */
  clock?: () => number;
};

export type Sandbox = { url: string; close(): Promise<void> };

/**
 * Starts the sandbox and returns its base URL (no trailing slash). `close` drops open connections and may be called
 * twice. Throws when the token is unusable, and Node's own error when the port is taken.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { port = 0, host = '127.0.0.1', token, clock = Date.now } = options;
  if (!/^[\x21-\x7e]{16,512}$/.test(token)) {
    throw new Error('The sandbox token must be 16 to 512 visible ASCII characters without spaces; make a random one.');
  }
  const world = seedWorld(clock);
  const routes = [...issueRoutes(world), ...mailRoutes(world), ...refundRoutes(world)];
  const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 10_000 }, listenTo(routes, token));
  server.maxConnections = 256;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const url = `http://${host}:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url, close };
}
