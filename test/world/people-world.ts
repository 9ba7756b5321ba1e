/** A broker with a platform that has tokens per person, and an issuer whose assertions about people it accepts. */
import { beforeEach } from 'vitest';
import { type Answer, expectStatus, type TestAgent } from './agent.ts';
import { govern, READ_DOCS } from './docs-platform.ts';
import { agentOfPeople, confirmAll, consentAsserted, documentOf } from './people.ts';
import { type AuthorizationServer, startAuthorizationServer } from './servers/authorization-server.ts';
import { CLIENT_ID, startIdentityProvider, type TestProvider } from './servers/identity-provider.ts';
import type { StoreKind } from './stores.ts';
import { fresh, givenWorld, type Organisation, shared, type World } from './world.ts';

/** A person asserted by a source that the platform accepts. */
export const slack = (id: string) => ({ source: 'slack', id });

export type PeopleWorld = {
  server: AuthorizationServer;
  issuer: TestProvider;
  world: World;
  /** A new one for each test by default; governed by `document()`. */
  organisation: Organisation;
  /** An agent of that organisation, allowed everything on the platform. */
  agent: TestAgent;
  /** Returns the governance file. `more`: members to replace. */
  document(more?: object): object;
  /** Makes a read for a person, or for nobody. `more`: further members of the call. */
  act(caller: object | undefined, more?: object, by?: TestAgent): Promise<Answer>;
  /** Returns whose token the platform got. */
  who(caller: object): Promise<string | undefined>;
  assertion(person: string): Promise<{ assertion: string }>;
  /** Begins the consent of a person, who completes it with an account of the platform, and an owner confirms it. */
  connected(caller: object, login: string): Promise<void>;
};

/**
 * `tokenSeconds`: lifetime of the platform's access tokens. `organisations`: a new one with its agent for each test, or one for all of them.
 * `reaches`: local addresses of platforms, beside the issuers.
 */
export function givenPeople(
  store: StoreKind,
  {
    tokenSeconds,
    environment = {},
    organisations = 'each',
    reaches = () => [],
  }: {
    tokenSeconds?: number;
    environment?: Record<string, string>;
    organisations?: 'each' | 'one';
    reaches?: () => string[];
  } = {},
): PeopleWorld {
  const server = shared(() => startAuthorizationServer({ ...(tokenSeconds !== undefined && { tokenSeconds }) }));
  const issuer = shared(() => startIdentityProvider({ secret: false }));
  const world = givenWorld(store, () => ({
    AGENT_BROKER_ALLOW_PRIVATE: [server.address, new URL(issuer.issuer).host, ...reaches()].join(),
    ...environment,
  }));
  shared(async () => {
    server.serve(world.running.baseUrl);
    await issuer.serve(world.running.baseUrl);
    for (const person of ['ann', 'bob']) issuer.people.set(person, {});
    return {};
  });
  const document = (more: object = {}) => {
    const caller_issuers = [{ issuer: issuer.issuer, audience: 'agents', client_id: CLIENT_ID }];
    return documentOf(server, { asserted: ['slack'] }, { caller_issuers, ...more });
  };
  const made = organisations === 'one' ? shared : fresh;
  const organisation = made(async () => {
    const one = await world.organisation();
    await expectStatus(200, govern(one, document()));
    return one;
  });
  const agent = made(() => agentOfPeople(organisation));
  beforeEach(() => {
    server.slowMs = 0;
    server.before = undefined;
    server.issued = undefined;
    server.instead = undefined;
    server.asked.length = 0;
    server.bearers.length = 0;
    server.served.length = 0;
  });
  const act: PeopleWorld['act'] = (caller, more = {}, by = agent) =>
    by.act({ ...READ_DOCS, ...(caller && { caller }), ...more });
  return {
    server,
    issuer,
    world,
    organisation,
    agent,
    document,
    act,
    who: async (caller) => (await act(caller)).body.data?.who,
    assertion: async (person) => ({ assertion: await issuer.assertion(person) }),
    connected: async (caller, login) => {
      const { body } = await act(caller);
      await consentAsserted(server, body.consent_url, login);
      await confirmAll(organisation);
    },
  };
}
