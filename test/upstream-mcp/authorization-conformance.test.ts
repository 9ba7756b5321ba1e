/**
 * The conformance suite for MCP clients with the broker as a client of authorization servers: an admin connects the suite's server, an agent
 * calls its tools, and where the broker asks for it the admin connects the server again.
 */
import { beforeAll, describe, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { send, TestAgent } from '../world/agent.ts';
import { localUrlOf } from '../world/local-url.ts';
import { type Expected, runAllScenarios } from '../world/mcp/conformance.ts';
import { ALLOW_ALL, type Organisation, startWorld, type World } from '../world/world.ts';
import { callOf } from './connected.ts';

const BASE_URL = 'https://broker.example';
const SCOPE = 'tools:all';
const CLIENT = 'CLIENT_ID';
const SECRET = 'CLIENT_SECRET';
/** The range from which the system assigns free ports, the suite's among them. */
const EPHEMERAL_PORTS = Array.from({ length: 28_232 }, (_, at) => 32_768 + at);

const FLOW = ['authorization-server-metadata', 'client-registration', 'authorization-request', 'token-request'];
const RESOURCE = ['resource-parameter-in-authorization', 'resource-parameter-in-token'];
const ISS = ['sep-837-application-type-present'];

/** `auth`: of the platform's manifest, from the scenario's context for its client. */
type Scenario = Expected & {
  auth?: (context: Record<string, string>, authorizationServer: string) => object;
  /** Whether the broker gets tokens for itself, with the scenario's context as the secret of the connection. */
  isForItself?: boolean;
  /** Whether an owner connects the server again when a call is refused. */
  connectsAgain?: boolean;
};

const SCENARIOS: Record<string, Scenario> = {
  'metadata-default': { passes: ['prm-pathbased-requested', ...FLOW, ...RESOURCE] },
  'metadata-var1': { passes: [...FLOW, ...RESOURCE] },
  'metadata-var2': { passes: [...FLOW, ...RESOURCE] },
  'metadata-var3': { passes: [...FLOW, ...RESOURCE] },
  'basic-cimd': {
    passes: [],
    cannot: { 'cimd-client-id-used': 'the suite takes its own address alone; the broker’s is tested below' },
  },
  'scope-from-www-authenticate': { passes: ['scope-from-www-authenticate'] },
  'scope-from-scopes-supported': { passes: ['scope-from-scopes-supported'] },
  'scope-omitted-when-undefined': { passes: ['scope-omitted-when-undefined'] },
  'scope-step-up': { passes: ['scope-step-up-initial', 'scope-step-up-escalation'], connectsAgain: true },
  'scope-retry-limit': { passes: ['scope-retry-limit'] },
  'token-endpoint-auth-basic': { passes: ['token-endpoint-auth-method'] },
  'token-endpoint-auth-post': { passes: ['token-endpoint-auth-method'] },
  'token-endpoint-auth-none': { passes: ['token-endpoint-auth-method'] },
  'pre-registration': {
    passes: ['pre-registration-auth'],
    auth: ({ client_id }, issuer) => ({ issuer, client_id, client_secret: { env: SECRET } }),
  },
  '2025-03-26-oauth-metadata-backcompat': { passes: FLOW },
  '2025-03-26-oauth-endpoint-fallback': {
    passes: [],
    cannot: {
      'client-registration': 'a server without metadata says nothing of PKCE, so it is refused',
      'authorization-request': 'the same',
      'token-request': 'the same',
    },
  },
  'resource-mismatch': { passes: ['resource-mismatch-rejected'] },
  'offline-access-scope': { passes: ['sep-2207-offline-access-requested'] },
  'offline-access-not-supported': { passes: ['sep-2207-offline-access-not-requested'] },
  'authorization-server-migration': { passes: ['sep-2352-reregister-on-as-change'], connectsAgain: true },
  'iss-supported': { passes: ISS },
  'iss-not-advertised': { passes: ISS },
  'iss-supported-missing': { passes: ISS },
  'iss-wrong-issuer': { passes: ISS },
  'iss-unexpected': { passes: ISS },
  'iss-normalized': { passes: ISS },
  'metadata-issuer-mismatch': { passes: [] },
  'client-credentials-basic': {
    passes: ['client-credentials-basic-auth'],
    auth: (_context, issuer) => ({ type: 'client_credentials', token_endpoint: `${issuer}/token` }),
    isForItself: true,
  },
};

describe('an MCP server that authorizes its clients', () => {
  let world: World;
  let here: string;
  let judge: (scenario: string, expected: Expected) => void;
  beforeAll(async () => {
    const allowPrivate = EPHEMERAL_PORTS.flatMap((port) => [`localhost:${port}`, `127.0.0.1:${port}`]);
    world = await startWorld('sqlite', { BASE_URL }, { before: async () => ({ allowPrivate }) });
    here = localUrlOf(world);
    judge = await runAllScenarios(async (name, url, context = '{}') => {
      const scenario = SCENARIOS[name.replace('auth/', '')];
      return scenario ? await connectAndCall(scenario, url, JSON.parse(context)) : 'not of authorization';
    });
  }, 180_000);

  const signedIn = ({ owner }: Organisation) => ({
    cookie: `__Host-svc_owner=${mintOwnerSession(world.running.broker, owner).token}`,
    'x-svc-csrf': '1',
    origin: BASE_URL,
  });

  /** Clicks Connect, at a server that consents without asking. Returns the status of the last page. */
  async function connect(organisation: Organisation, connection: string): Promise<number> {
    const headers = signedIn(organisation);
    const begun = await send(`${here}/owner/connections/${connection}/oauth/start`, { method: 'POST', headers });
    if (begun.status !== 200) return begun.status;
    const consented = await send(begun.body.authorization_url, {});
    const back = consented.headers.get('location') ?? '';
    if (!back.startsWith(BASE_URL)) throw new Error(`authorize: ${consented.status} ${back} ${consented.text}`);
    return (await send(here + back.slice(BASE_URL.length), { headers })).status;
  }

  async function connectAndCall(scenario: Scenario, url: string, context: Record<string, string>): Promise<unknown> {
    const organisation = await world.organisation();
    const auth = scenario.auth?.(context, await issuerOf(url));
    const manifest = {
      kind: 'mcp',
      base_url: url,
      auth: { type: 'oauth2', ...auth },
      scopes: { [SCOPE]: ['tool *'] },
    };
    const headers = { ...signedIn(organisation), 'content-type': 'application/json' };
    const reference = (name: string) => ({ env: name });
    const ofConnection = { client_id: reference(CLIENT), client_secret: reference(SECRET) };
    const applied = await send(`${here}/owner/governance/apply`, {
      method: 'POST',
      headers,
      body: JSON.stringify({
        text: JSON.stringify({
          platforms: { tools: manifest },
          connections: { main: { platform: 'tools', ...(scenario.isForItself && { secret: ofConnection }) } },
        }),
        values: {
          ...(scenario.isForItself && { [`env:${CLIENT}`]: context.client_id }),
          ...(context.client_secret !== undefined && { [`env:${SECRET}`]: context.client_secret }),
        },
      }),
    });
    if (applied.status !== 200) throw new Error(applied.text);
    const [{ id: connection }] = (await send(`${here}/owner/connections`, { headers })).body.connections;
    const connected = scenario.isForItself ? 200 : await connect(organisation, connection);
    if (connected !== 200) return { connected };
    const grants = { tools: { scopeList: [SCOPE] } };
    const agent = new TestAgent({ ...(await organisation.agent({ rules: ALLOW_ALL, grants })), baseUrl: here });
    const list = () => agent.act({ platform: 'tools', endpoint: '/tools', method: 'GET', scope: SCOPE });
    const call = async (): Promise<unknown> => {
      const { status, body } = await list();
      const tools: { name: string }[] = body.data?.tools ?? [];
      const called = await Promise.all(tools.map(({ name }) => agent.act(callOf(name, SCOPE))));
      return { list: status, error: body.error, calls: called.map((one) => [one.status, one.body.error]) };
    };
    const first = await call();
    if (!scenario.connectsAgain) return { first };
    const again = await connect(organisation, connection);
    return { first, again, second: await call() };
  }

  test.each(Object.entries(SCENARIOS))('%s', (name, expected) => judge(`auth/${name}`, expected));
});

async function issuerOf(url: string): Promise<string> {
  const { origin, pathname } = new URL(url);
  const answer = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  const { authorization_servers: [issuer = ''] = [] } = (answer.ok ? await answer.json() : {}) as {
    authorization_servers?: string[];
  };
  return issuer;
}
