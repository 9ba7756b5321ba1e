/** A broker whose platform accepts signed requests only, and verifies each. */
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { beforeEach } from 'vitest';
import type { Answer, TestAgent } from '../world/agent.ts';
import { listenOnLoopback } from '../world/listen.ts';
import type { StoreKind } from '../world/stores.ts';
import { ALLOW_ALL, fresh, givenWorld, type Organisation, shared, type World } from '../world/world.ts';
import type { Received } from './aws-verifier.ts';

export type SignedPlatform = {
  url: string;
  address: string;
  /** Returns a code for what is wrong with a request; undefined when it is valid. */
  verify: (received: Received) => string | undefined;
  /** Accepted requests, oldest first. */
  taken: Received[];
};

async function startSignedPlatform(): Promise<SignedPlatform> {
  const server = createServer(async (request, response) => {
    const { method = '', url: target = '', headers } = request;
    const received = { method, target, headers, body: await buffer(request) };
    const problem = platform.verify(received);
    if (problem !== undefined)
      return void response
        .writeHead(403, { 'content-type': 'application/xml' })
        .end(`<?xml version="1.0"?><Error><Code>${problem}</Code><Message>no</Message></Error>`);
    platform.taken.push(received);
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ sent: headers, body: String(received.body) }));
  });
  const port = await listenOnLoopback(server);
  const platform: SignedPlatform = {
    url: `http://127.0.0.1:${port}`,
    address: `127.0.0.1:${port}`,
    verify: () => 'AccessDenied',
    taken: [],
  };
  return platform;
}

const SCOPES = { 'store:read': ['GET /**'], 'store:write': ['PUT /**', 'POST /**', 'DELETE /**'] };
const SCOPE_LIST = Object.keys(SCOPES);

export type SigningWorld = {
  host: SignedPlatform;
  world: World;
  organisation: Organisation;
  /** Applies a governance file. */
  apply(auth: object, secret: object | string, platform?: object): Promise<Answer>;
  agent(rules?: object[]): Promise<TestAgent>;
};

export const callOf = (method: string, endpoint: string, more: object = {}) => ({
  platform: 'store',
  method,
  endpoint,
  scope: method === 'GET' ? 'store:read' : 'store:write',
  ...more,
});

/** Each test has its own organisation. */
export function givenSigningWorld(store: StoreKind): SigningWorld {
  const host = shared(() => startSignedPlatform());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: host.address }));
  const organisation = fresh(() => world.organisation());
  beforeEach(() => {
    host.taken.length = 0;
    host.verify = () => 'AccessDenied';
  });
  return {
    host,
    world,
    organisation,
    apply: async (auth, secret, platform = {}) => {
      const text = JSON.stringify({
        platforms: { store: { kind: 'rest', base_url: host.url, auth, scopes: SCOPES, ...platform } },
        connections: { main: { platform: 'store', secret: { env: 'SECRET' } } },
      });
      const value = typeof secret === 'string' ? secret : JSON.stringify(secret);
      return await organisation.ask('POST', '/owner/governance/apply', { text, values: { 'env:SECRET': value } });
    },
    agent: (rules = ALLOW_ALL) => organisation.agent({ rules, grants: { store: { scopeList: SCOPE_LIST } } }),
  };
}
