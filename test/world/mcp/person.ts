/** A person with an MCP client and a browser that is signed in to the console. */
import {
  Client,
  type OAuthClientInformationMixed,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { UnauthorizedError as FirstUnauthorized } from '@modelcontextprotocol/sdk/client/auth.js';
import type { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { mintOwnerSession } from '../../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../../broker/auth/session-cookie.ts';
import type { OwnerTable } from '../../../broker/store/tables/organisations.ts';
import { type Answer, send } from '../agent.ts';
import { Browser } from '../browser/browser.ts';
import type { World } from '../world.ts';

/** Nothing listens there: the browser stops before this request. */
export const CALLBACK = 'http://127.0.0.1:9/callback';

/** The storage of an SDK client. */
export class ClientMemory implements OAuthClientProvider {
  information: OAuthClientInformationMixed | undefined;
  saved: OAuthTokens | undefined;
  verifier = '';
  /** The name of the agent that was created. */
  name: string | undefined;
  asked: URL | undefined;
  redirectUrl = CALLBACK;
  clientMetadataUrl?: string;
  addClientAuthentication?: NonNullable<OAuthClientProvider['addClientAuthentication']>;
  more: Partial<OAuthClientMetadata> = {};
  get clientMetadata(): OAuthClientMetadata {
    return { client_name: 'Test Client', redirect_uris: [this.redirectUrl], ...this.more };
  }
  clientInformation = () => this.information;
  saveClientInformation = (information: OAuthClientInformationMixed) => {
    this.information = information;
  };
  tokens = () => this.saved;
  saveTokens = (tokens: OAuthTokens) => {
    this.saved = tokens;
  };
  redirectToAuthorization = (url: URL) => {
    this.asked = url;
  };
  saveCodeVerifier = (verifier: string) => {
    this.verifier = verifier;
  };
  codeVerifier = () => this.verifier;
  discovered: OAuthDiscoveryState | undefined;
  discoveryState = () => this.discovered;
  saveDiscoveryState = (state: OAuthDiscoveryState) => {
    this.discovered = state;
  };
  invalidateCredentials = () => {
    this.saved = undefined;
  };
}

/** Returns a browser in which this owner is signed in; without an owner, one without a session. */
export function browserOf(world: World, owner?: OwnerTable): Browser {
  const browser = new Browser();
  browser.stopAt = (url) => !url.href.startsWith(world.running.baseUrl);
  if (owner) signIn(world, browser, owner);
  return browser;
}

/** Signs this owner in. */
export function signIn(world: World, browser: Browser, owner: OwnerTable): void {
  const { broker, baseUrl } = world.running;
  const name = sessionCookieName(baseUrl);
  const { token } = mintOwnerSession(broker, owner);
  browser.cookies = browser.cookies.filter((cookie) => cookie.name !== name);
  browser.cookies.push({ name, value: token, host: new URL(baseUrl).hostname, path: '/' });
}

/** Loads the data of the consent page, with the cookies that the browser would send. */
export async function askConsent(
  browser: Browser,
  page: string,
  what: 'request' | 'decision',
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const url = `${page}/${what}`;
  return await send(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      cookie: browser.cookieFor(url),
      'sec-fetch-site': 'same-origin',
      ...(body !== undefined && { 'content-type': 'application/json', 'x-svc-csrf': '1' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** Opens the authorization endpoint and returns the address of the consent page. */
export async function openConsent(browser: Browser, asked: URL | string): Promise<string> {
  const visit = await browser.get(String(asked));
  if (visit.status !== 200 || !new URL(visit.url).pathname.startsWith('/oauth/consent/'))
    throw new Error(`no consent page: ${visit.status} at ${visit.url} ${visit.text.slice(0, 1000)}`);
  return visit.url;
}

/** Goes from the authorization endpoint to the client's callback; returns its parameters. */
export async function consent(
  browser: Browser,
  asked: URL | string,
  decision: Record<string, unknown> = {},
): Promise<URLSearchParams> {
  const page = await openConsent(browser, asked);
  const decided = await askConsent(browser, page, 'decision', {
    allow: true,
    name: `client-${crypto.randomUUID().slice(0, 8)}`,
    grants: [],
    ...decision,
  });
  if (decided.status !== 200) throw new Error(`not decided: ${decided.status} ${decided.text}`);
  const back = await browser.get(decided.body.location);
  return new URL(back.url).searchParams;
}

/** Returns a connected client of the SDK: registered, authorised, with tokens in its memory, unless it has some already. */
export async function connectClient(
  world: World,
  browser: Browser,
  options: { decision?: Record<string, unknown>; memory?: ClientMemory; client?: Client } = {},
): Promise<{ client: Client; memory: ClientMemory; transport: StreamableHTTPClientTransport }> {
  const memory = options.memory ?? new ClientMemory();
  const url = new URL(`${world.running.baseUrl}/mcp`);
  const client = options.client ?? new Client({ name: 'test', version: '1' });
  if (!memory.saved) {
    const first = new StreamableHTTPClientTransport(url, { authProvider: memory });
    const refused = await client.connect(first).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!(refused instanceof UnauthorizedError)) throw new Error(`expected to be sent to consent: ${refused}`);
    await first.finishAuth(await consent(browser, memory.asked!, options.decision));
  }
  const transport = new StreamableHTTPClientTransport(url, { authProvider: memory });
  await client.connect(transport);
  return { client, memory, transport };
}

/** Does the same with a client of the SDK's first generation. */
export async function connectFirstClient(
  world: World,
  browser: Browser,
  options: { client: FirstClient; memory: ClientMemory; decision?: Record<string, unknown> },
): Promise<void> {
  const { client, memory } = options;
  const url = new URL(`${world.running.baseUrl}/mcp`);
  // The type of the second generation's memory has more members than the first one requires.
  const transport = () => new FirstTransport(url, { authProvider: memory as never });
  if (!memory.saved) {
    const first = transport();
    const refused = await client.connect(first as Transport).catch((error: unknown) => error);
    if (!(refused instanceof FirstUnauthorized)) throw new Error(`expected to be sent to consent: ${refused}`);
    await first.finishAuth((await consent(browser, memory.asked!, options.decision)).get('code')!);
  }
  await client.connect(transport() as Transport);
}
