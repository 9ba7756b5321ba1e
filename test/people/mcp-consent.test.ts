/** Tool calls for a person who has not connected the platform: the link, the wait for the person, and the repeated call. */
import { UrlElicitationRequiredError } from '@modelcontextprotocol/client';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type CallTool,
  consentLinkIn,
  consentVerified,
  HANDSHAKE,
  STATELESS,
  STDIO,
  TRANSPORTS,
} from '../world/mcp/people.ts';
import { confirmAll, consentAsserted, outlivePerson } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { thorough } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL } from '../world/world.ts';

const READ = { platform: 'docs', scope: 'docs:read', endpoint: '/items' };
const WRITE = { platform: 'docs', scope: 'docs:write', endpoint: '/items', data: { title: 'once' } };
const OPENS_LINKS = { elicitation: { url: {} } };

describe.each(ONE_STORE)(`the MCP tools and consents of people on %s${postgresNote}`, (store) => {
  const people = givenPeople(store);
  const { server, world, organisation, assertion, act } = people;
  beforeEach(async () => {
    expect((await organisation.ask('POST', '/owner/policies/default', { rules: ALLOW_ALL })).status).toBe(200);
  });

  /** Starts a call. `told`: the link in its progress message once it waits. */
  function waiting(call: CallTool, name: string, args: object) {
    const told = Promise.withResolvers<string>();
    const onprogress = ({ message }: { message?: string }) => {
      const url = consentLinkIn(message);
      if (url) told.resolve(url);
    };
    const answer = call(name, args, { onprogress });
    answer.catch(told.reject);
    return { told: told.promise, answer };
  }

  describe.each(TRANSPORTS)('over %s', (_name, connect) => {
    // Shaking hands differs in how the connection begins and waits, which the first test shows in CI.
    const testOnBoth = connect === HANDSHAKE ? test.runIf(thorough) : test;

    test('the call waits with the request open, and continues when the person has finished', async () => {
      const call = await connect(world, organisation);
      const { told, answer } = waiting(call, 'write_platform', { ...WRITE, caller: await assertion('ann') });
      const url = await told;
      expect((await act(await assertion('ann'))).body.reason).toBe('not_consented');
      server.bearers.length = 0;
      await consentVerified(people, url, 'ann');
      expect(await answer).toMatchObject({ status: 'answered', data: { who: 'ann' } });
      expect(server.bearers).toHaveLength(1);
    });

    testOnBoth(
      'concurrent calls wait for two people, each with their own link, and several for one person',
      async () => {
        const call = await connect(world, organisation);
        const callers = { ann: await assertion('ann'), bob: await assertion('bob') };
        const one = (caller: object, more: object = {}) => waiting(call, 'read_platform', { ...READ, ...more, caller });
        const calls = [one(callers.ann), one(callers.bob), one(callers.ann, { endpoint: '/items?page=2' })];
        const [ann, bob, again] = await Promise.all(calls.map(({ told }) => told));
        expect([ann === bob, ann === again]).toEqual([false, true]);
        await consentVerified(people, bob!, 'bob');
        expect((await calls[1]!.answer).data.who).toBe('bob');
        await consentVerified(people, ann!, 'ann');
        expect((await calls[0]!.answer).data.who).toBe('ann');
        expect((await calls[2]!.answer).data.who).toBe('ann');
      },
    );

    testOnBoth(
      'a call without a caller, or from a source that is not accepted, gets advice; an asserted person’s account needs an owner’s confirmation first',
      async () => {
        const call = await connect(world, organisation);
        const nobody = await call('read_platform', READ);
        expect(nobody).toMatchObject({ status: 'not_ready', code: 'consent_required' });
        expect(nobody.next).toContain('Call again with caller');
        const foreign = await call('read_platform', { ...READ, caller: { source: 'teams', id: 'U-ANN' } });
        expect(foreign.next).toContain('assertion');

        const args = { ...READ, caller: slack('U-ANN') };
        const { told, answer } = waiting(call, 'read_platform', args);
        await consentAsserted(server, await told, 'ann');
        const unconfirmed = await answer;
        expect(unconfirmed).toMatchObject({ status: 'not_ready', code: 'consent_required' });
        expect(unconfirmed.detail).toContain('An owner has to confirm');
        expect(unconfirmed.consent_url).toBeUndefined();
        await confirmAll(organisation);
        expect((await call('read_platform', args)).data.who).toBe('ann');
      },
    );

    testOnBoth(
      'a person who revoked the consent at the platform is asked again, and the call is made with the new token',
      async () => {
        await consentVerified(people, (await act(await assertion('ann'))).body.consent_url, 'ann');
        await outlivePerson(world, organisation, 'ann@docs.example');
        let refused = 0;
        server.instead = (path) => {
          if (path !== '/token' || refused++ > 0) return undefined;
          return { status: 400, body: '{"error":"invalid_grant"}' };
        };
        const call = await connect(world, organisation);
        const { told, answer } = waiting(call, 'read_platform', { ...READ, caller: await assertion('ann') });
        await consentVerified(people, await told, 'ann');
        expect(await answer).toMatchObject({ status: 'answered', data: { who: 'ann' } });
      },
    );
  });

  describe.each([
    ['by a request of a server on stdio', STDIO],
    ['by a result, of 2026-07-28', STATELESS],
  ] as const)('a client that opens links gets the link %s', (_how, connect) => {
    test('and the call is made when the person has finished', async () => {
      const links: string[] = [];
      const onLink = async (url: string) => {
        links.push(url);
        await consentVerified(people, url, 'ann');
      };
      const call = await connect(world, organisation, { capabilities: OPENS_LINKS, onLink });
      const answer = await call('read_platform', { ...READ, caller: await assertion('ann') });
      expect(answer).toMatchObject({ status: 'answered', data: { who: 'ann' } });
      expect(links).toHaveLength(1);
    });

    test('and the answer has the link when the person declines', async () => {
      const onLink = async () => {
        // A faster refusal would count as the client's own.
        await new Promise((later) => setTimeout(later, 2_100));
        return 'decline';
      };
      const call = await connect(world, organisation, { capabilities: OPENS_LINKS, onLink });
      const answer = await call('write_platform', { ...WRITE, caller: await assertion('ann') });
      expect(answer).toMatchObject({ status: 'not_ready', code: 'consent_required' });
      expect(answer.detail).toContain('They did not open the link');
      expect(answer.next).toContain(answer.consent_url);
      expect(server.bearers).toEqual([]);
    });
  });

  test('a client that gets links by an error gets the link once; the identical call then waits', async () => {
    const call = await HANDSHAKE(world, organisation, { capabilities: OPENS_LINKS });
    const caller = await assertion('ann');
    const error = await call('read_platform', { ...READ, caller }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UrlElicitationRequiredError);
    const { url } = (error as UrlElicitationRequiredError).elicitations[0]!;
    expect((error as Error).message).toContain(url);
    const { told, answer } = waiting(call, 'read_platform', { ...READ, caller });
    expect(await told).toBe(url);
    await consentVerified(people, url, 'ann');
    expect((await answer).data.who).toBe('ann');
  });

  test('when the wait ends the answer has the link, and the repeated call continues after the consent', async () => {
    const call = await STDIO(world, organisation, { words: ['--wait', '0'] });
    const caller = await assertion('ann');
    const answer = await call('read_platform', { ...READ, caller });
    expect(answer).toMatchObject({ status: 'not_ready', code: 'consent_required' });
    expect(answer.whole.content[0].text).toContain(answer.consent_url);
    expect(answer.next).toMatch(/the identical call again/);
    await consentVerified(people, answer.consent_url, 'ann');
    expect((await call('read_platform', { ...READ, caller })).data.who).toBe('ann');
  });
});
