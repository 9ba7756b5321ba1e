/** A broker whose owner connected it to an App with a governance file. */
import { beforeEach } from 'vitest';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { APP_ID, type AppPlatform, INSTALLATION, startAppPlatform } from '../world/servers/app-platform.ts';
import type { StoreKind } from '../world/stores.ts';
import { ALLOW_ALL, fresh, givenWorld, type Organisation, shared, type World } from '../world/world.ts';

export const SCOPES = [
  'contents.read',
  'contents.write',
  'issues.read',
  'issues.write',
  'workflows.write',
  'metadata.read',
];
export const grantOf = (constraints: object = {}, scopes = SCOPES) => ({
  codehost: { scopeList: scopes.map((one) => `codehost:${one}`), constraints: JSON.stringify(constraints) },
});
export const ONLY_APP = { repos: ['acme/app'] };

export const callOf = (method: string, endpoint: string, scope: string, data?: object) => ({
  platform: 'codehost',
  endpoint,
  method,
  scope: `codehost:${scope}`,
  ...(data && { data }),
});
export const READ = callOf('GET', '/repos/acme/app/contents/README.md', 'contents.read');
export const WRITE = callOf('PUT', '/repos/acme/app/contents/a.txt', 'contents.write', {
  message: 'm',
  content: 'YQ==',
});

type Terms = { pem?: string; installation?: string | null; to?: Organisation; platform?: object };

export type AppWorld = {
  host: AppPlatform;
  world: World;
  organisation: Organisation;
  /** Applies a governance file that connects the App. */
  apply(terms?: Terms): Promise<Answer>;
  /** An agent whose grant lists `acme/app`, or has the given constraints. */
  agent(constraints?: object, scopes?: string[]): Promise<TestAgent>;
};

/** Each test has its own organisation, connected unless `connected` is false; the App's platform has no requests yet. */
export function givenAppWorld(
  store: StoreKind,
  {
    connected = true,
    environment = () => ({}),
  }: { connected?: boolean; environment?: () => Record<string, string> } = {},
): AppWorld {
  const host = shared(() => startAppPlatform());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: host.address, ...environment() }));
  const organisation = fresh(() => world.organisation());
  const made: AppWorld = {
    host,
    world,
    organisation,
    apply: async ({ pem = host.pem, installation = INSTALLATION, to = organisation, platform = {} } = {}) => {
      const auth = {
        type: 'app',
        app_id: APP_ID,
        private_key: { env: 'APP_KEY' },
        ...(installation !== null && { installation_id: installation }),
      };
      const text = JSON.stringify({
        platforms: { codehost: { use: 'github', base_url: host.url, auth, ...platform } },
        connections: { 'codehost-main': { platform: 'codehost' } },
      });
      return await to.ask('POST', '/owner/governance/apply', { text, values: { 'env:APP_KEY': pem } });
    },
    agent: (constraints = ONLY_APP, scopes = SCOPES) =>
      organisation.agent({ rules: ALLOW_ALL, grants: grantOf(constraints, scopes) }),
  };
  beforeEach(async () => {
    host.reset();
    host.now = () => world.running.broker.clock();
    if (!connected) return;
    await expectStatus(200, made.apply());
  });
  return made;
}
