/** A broker whose owner connected it with a governance file to a platform that issues tokens to clients and service accounts. */
import { beforeEach, expect } from 'vitest';
import type { Answer, TestAgent } from '../world/agent.ts';
import type { StoreKind } from '../world/stores.ts';
import { ALLOW_ALL, fresh, givenWorld, type Organisation, shared, type World } from '../world/world.ts';
import { ACCOUNT, CLIENT_ID, CLIENT_SECRET, KEY_ID, startTokenPlatform, type TokenPlatform } from './token-platform.ts';

export const READ = { platform: 'reports', endpoint: '/reports/1', method: 'GET', scope: 'reports:read' };
export const WRITE = { ...READ, method: 'POST', scope: 'reports:write', data: { title: 'x' } };

export type Kind = 'client_credentials' | 'service_account';

export type TokenWorld = {
  host: TokenPlatform;
  world: World;
  organisation: Organisation;
  /** The connection's secret, as an owner enters it. */
  secretOf(kind: Kind): string;
  /** Applies a governance file. */
  apply(kind: Kind, auth?: object, secret?: string): Promise<Answer>;
  agent(): Promise<TestAgent>;
};

/** Each test has its own organisation. */
export function givenTokenWorld(store: StoreKind): TokenWorld {
  const host = shared(() => startTokenPlatform());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: host.address }));
  const organisation = fresh(() => world.organisation());
  const made: TokenWorld = {
    host,
    world,
    organisation,
    secretOf: (kind) =>
      JSON.stringify(
        kind === 'client_credentials'
          ? { client_id: CLIENT_ID, client_secret: CLIENT_SECRET }
          : // As Google's key file has it.
            {
              type: 'service_account',
              project_id: 'acme',
              private_key_id: KEY_ID,
              private_key: host.pem,
              client_email: ACCOUNT,
              token_uri: 'https://oauth2.googleapis.com/token',
            },
      ),
    apply: async (kind, auth = {}, secret = made.secretOf(kind)) => {
      const text = JSON.stringify({
        platforms: {
          reports: {
            kind: 'rest',
            base_url: host.url,
            auth: {
              type: kind,
              token_endpoint: `${host.url}/token`,
              scopes: ['reports.read', 'reports.write'],
              ...auth,
            },
            scopes: { 'reports:read': ['GET /**'], 'reports:write': ['POST /**'] },
          },
        },
        connections: { main: { platform: 'reports', secret: { env: 'SECRET' } } },
      });
      return await organisation.ask('POST', '/owner/governance/apply', { text, values: { 'env:SECRET': secret } });
    },
    agent: () =>
      organisation.agent({
        rules: ALLOW_ALL,
        grants: { reports: { scopeList: ['reports:read', 'reports:write'] } },
      }),
  };
  beforeEach(() => {
    host.reset();
    host.now = () => world.running.broker.clock();
  });
  return made;
}

/** Expects a call that the platform accepts. */
export async function taken(agent: Pick<TestAgent, 'act'>, call: Record<string, unknown> = READ): Promise<Answer> {
  const answer = await agent.act(call);
  expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 200]);
  return answer;
}
