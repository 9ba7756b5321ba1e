/** A broker whose organisation trusts a scriptable issuer. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, beforeEach, expect } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { govern, READ_DOCS } from '../world/docs-platform.ts';
import { agentOfPeople, documentOf } from '../world/people.ts';
import { startAuthorizationServer } from '../world/servers/authorization-server.ts';
import { CLIENT_ID, startLyingProvider } from '../world/servers/lying-provider.ts';
import type { StoreKind } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, shared, startWorld } from '../world/world.ts';

export const JSON_TYPE = { 'content-type': 'application/json' };

export function givenLyingIssuer(store: StoreKind) {
  const server = shared(() => startAuthorizationServer());
  const issuer = shared(() => startLyingProvider());
  /** Issuers that have not been contacted yet. */
  const others = shared(() => Promise.all([1, 2, 3, 4].map(() => startLyingProvider())));
  /** Requests to an internal address that must not be called. */
  const asked: string[] = [];
  const inside = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ keys: issuer.keys }));
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
    return () => void inside.close();
  });
  const world = shared(async () => {
    const reached = [server, issuer, ...others].map((one) => new URL(one.issuer).host);
    const made = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: reached.join() });
    server.serve(made.running.baseUrl);
    return made;
  });
  beforeEach(() => {
    // Earlier keys and metadata are too old to be used.
    world.clock.skewMs += 61 * MINUTE_MS;
    issuer.beHonest();
    issuer.clock = () => world.running.broker.clock();
    issuer.seen.length = 0;
    server.seen.length = 0;
    server.bearers.length = 0;
    asked.length = 0;
  });
  const organisation = fresh(async () => {
    const made = await world.organisation();
    await trust({}, made);
    return made;
  });
  const agent = fresh(() => agentOfPeople(organisation));

  const trust = async (more: object = {}, by = organisation) => {
    const caller_issuers = [{ issuer: issuer.issuer, audience: 'agents', client_id: CLIENT_ID, ...more }];
    await expectStatus(200, govern(by, documentOf(server, { asserted: [] }, { caller_issuers })));
  };
  const claims = (different: object = {}) => issuer.honest({ aud: 'agents', ...different });
  const actAs = async (jwt: string, by: TestAgent = agent) =>
    await by.act({ ...READ_DOCS, caller: { assertion: jwt } });
  return {
    server,
    issuer,
    others,
    asked,
    world,
    organisation,
    agent,
    /** Trusts the issuer with other settings. */
    trust,
    insideUrl: () => `http://127.0.0.1:${(inside.address() as AddressInfo).port}/keys`,
    claims,
    /** Returns a valid assertion with different claims. */
    assertion: async (different: object = {}) => await issuer.sign(claims(different)),
    actAs,
    /** Checks that the assertion leads neither to a call nor to a consent. */
    refused: async (jwt: string, says: RegExp) => {
      const answer = await actAs(jwt);
      expect([answer.status, answer.body.reason, answer.body.consent_url]).toEqual([412, 'no_caller', undefined]);
      expect(answer.body.detail).toMatch(says);
      expect(answer.text).not.toContain(jwt);
      const started = await agent.post('/v1/consent/caller/start', { platform: 'docs', caller: { assertion: jwt } });
      expect([started.status, started.body.error]).toEqual([400, 'invalid_request']);
      expect(server.bearers).toEqual([]);
    },
    /** Checks that the assertion identifies somebody, who has not consented yet. */
    believed: async (jwt: string, by: TestAgent = agent) =>
      expect((await actAs(jwt, by)).body.reason).toBe('not_consented'),
  };
}
