/**
 * The standard's own test of a decision point, run against the broker: the sub-levels Basic Core, Batch Core and Discovery of the working group's
 * certification scenario for the Authorization API 1.0, by its numbers; then lists of cases in the form of the group's interoperability runs, `{evaluation:
 * [{request, expected}], evaluations: […]}`. The cases are adapted to the broker: a record is a platform, read and write are its scopes, and alice and bob
 * are agents, about whom an organisation's gateway asks with a session of an owner. The Properties sub-levels do not apply, because the broker uses its own
 * facts, and there is no search.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { type Answer, expectStatus, send, type TestAgent } from '../world/agent.ts';
import { expectProblem } from '../world/problem.ts';
import { exchange } from '../world/raw.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const SINGLE = '/v1/authzen/access';
const BATCH = '/access/v1/evaluations';

// biome-ignore lint/suspicious/noExplicitAny: cases are any JSON.
type Json = any;

describe.each(ONE_STORE)(`the Authorization API 1.0 on %s${postgresNote}`, (store) => {
  let agents: Record<'alice' | 'bob', TestAgent>;
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    for (const id of ['record-1', 'record-2'])
      await organisation.platform({ id, manifest: { scopes: { read: ['GET /items'], write: ['POST /items'] } } });
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const having = (name: string, scopeList: string[]) =>
      organisation.agent({ name, policy, grants: { 'record-1': { scopeList } } });
    agents = { alice: await having('alice', ['read', 'write']), bob: await having('bob', ['read']) };
  });

  /** Replaces the names in a case by the agents' ids. */
  const named = (request: unknown): string =>
    JSON.stringify(request).replaceAll(/"(alice|bob)"/g, (_all, name: 'alice' | 'bob') => `"${agents[name].agentId}"`);
  const gateway = (path: string, request: unknown): Promise<Answer> =>
    organisation.ask('POST', path, JSON.parse(named(request)));

  const of = (subject: string, action: string, resource = 'record-1') => ({
    subject: { type: 'user', id: subject },
    action: { name: action },
    resource: { type: 'record', id: resource },
  });
  const { subject, action, resource } = of('alice', 'read');
  const context = { time: '2025-06-27T18:03-07:00', ip: '192.168.1.1' };

  describe('Basic Core', () => {
    test.each<[number: string, request: Json, decision: boolean]>([
      ['1.4 rule 1, 2.2.1', of('alice', 'read'), true],
      ['1.4 rule 2', of('alice', 'write'), true],
      ['1.4 rule 3', of('bob', 'read'), true],
      ['1.4 rule 4, 2.2.2', of('bob', 'write'), false],
      ['2.2.3 a context', { ...of('alice', 'read'), context }, true],
      [
        '2.2.8 properties',
        {
          subject: { ...subject, properties: { department: 'Sales', role: 'manager' } },
          action: { ...action, properties: { method: 'GET' } },
          resource: { ...resource, properties: { status: 'active', owner: 'somebody' } },
        },
        true,
      ],
      ['2.2.9 unknown fields', { ...of('alice', 'read'), foo: 'bar', futureField: { nested: true } }, true],
    ])('%s', async (_number, request, decision) => {
      for (const path of [SINGLE, '/access/v1/evaluation']) {
        const answer = await gateway(path, request);
        expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
        // 2.3: a boolean, and an object beside it; 2.6: the same answer each time.
        expect(answer.body.decision).toBe(decision);
        expect(answer.body.context).toBeTypeOf('object');
      }
    });

    test.each<[number: string, request: Json]>([
      ['2.4.1 no subject', { action, resource }],
      ['2.4.1 no action', { subject, resource }],
      ['2.4.1 no resource', { subject, action }],
      ['2.4.2 a subject without type', { subject: { id: 'alice' }, action, resource }],
      ['2.4.2 a subject without id', { subject: { type: 'user' }, action, resource }],
      ['2.4.2 an action without name', { subject, action: {}, resource }],
      ['2.4.2 a resource without type', { subject, action, resource: { id: 'record-1' } }],
      ['2.4.2 a resource without id', { subject, action, resource: { type: 'record' } }],
      ['2.4.6 a subject that is text', { subject: 'alice', action, resource }],
      ['2.4.6 a name that is a number', { subject, action: { name: 123 }, resource }],
    ])('%s: 400, as a single evaluation and as a batch without a list', async (_number, request) => {
      for (const path of [SINGLE, BATCH]) expectProblem(await gateway(path, request), 400, 'invalid_request');
    });

    test('2.4.3 to 2.4.5 another content type, malformed JSON, no body: 400; 2.5 X-Request-ID comes back', async () => {
      const { alice } = agents;
      const body = named(of('alice', 'read'));
      const json = { 'content-type': 'application/json', 'x-request-id': 'bfe9eb29-ab87-4ca3-be83-a1d5d8305716' };
      for (const path of [SINGLE, BATCH]) {
        const ask = (headers: Record<string, string>, text?: string) =>
          alice.request('POST', path, { headers, ...(text !== undefined && { body: text }) });
        for (const wrong of [ask({ 'content-type': 'text/plain' }, body), ask(json, '{"subject":'), ask(json), ask({})])
          expectProblem(await wrong, 400, 'invalid_request');
        for (const answer of [await ask(json, body), await ask(json, '{}')])
          expect(answer.headers.get('x-request-id')).toBe(json['x-request-id']);
        expect((await ask({ 'content-type': 'application/json' }, body)).headers.get('x-request-id')).toBeNull();
      }
    });
  });

  test('5 requirement 4: X-Request-ID comes back also when the method or the host is refused', async () => {
    const port = Number(new URL(world.running.baseUrl).port);
    const ask = (line: string, host: string) =>
      exchange(port, `${line} HTTP/1.1\r\nHost: ${host}\r\nX-Request-ID: r-7\r\nConnection: close\r\n\r\n`);
    for (const path of [SINGLE, BATCH, '/access/v1/evaluation'])
      for (const [status, answer] of [
        [405, await ask(`GET ${path}`, 'localhost')],
        [421, await ask(`POST ${path}`, 'else.example')],
      ] as const)
        expect([answer.status, answer.head]).toEqual([status, expect.stringMatching(/^x-request-id: r-7\r?$/im)]);
  });

  describe('Batch Core', () => {
    const decisions = async (request: Json): Promise<boolean[]> => {
      const { body } = await expectStatus(200, gateway(BATCH, request));
      // 3.3: one decision for each item, in their order, and none at the top level.
      expect(Object.keys(body)).toEqual(['evaluations']);
      return body.evaluations.map(({ decision }: { decision: boolean }) => decision);
    };
    const item = (name: string, id = 'record-1') => ({ action: { name }, resource: { type: 'record', id } });

    test.each<[number: string, request: Json, expected: boolean[]]>([
      [
        '3.2.1 a list',
        { subject, action, evaluations: [{ resource }, { resource: { type: 'record', id: 'record-2' } }] },
        [true, false],
      ],
      [
        '3.2.2 in their order',
        {
          subject: { type: 'user', id: 'bob' },
          resource,
          evaluations: [{ action: { name: 'read' } }, { action: { name: 'write' } }],
        },
        [true, false],
      ],
      ['3.2.5 no defaults', { evaluations: [of('alice', 'read'), of('bob', 'write')] }, [true, false]],
      [
        '3.2.6 a context for all',
        {
          subject,
          action,
          context: { time: context.time },
          evaluations: [
            { resource },
            { resource: { type: 'record', id: 'record-2' }, context: { source: 'override' } },
          ],
        },
        [true, false],
      ],
      [
        '3.2.7 whole defaults, wholly replaced',
        { ...of('alice', 'write'), evaluations: [{}, { resource: { type: 'record', id: 'record-2' } }] },
        [true, false],
      ],
      [
        '3.2.7 what a default has to have, where an item lacks it',
        {
          subject,
          action: { name: 'write' },
          resource: { type: 'record' },
          evaluations: [
            { resource: { id: 'record-1', properties: { status: 'active' } } },
            { resource: { type: 'record', id: 'record-2' } },
            { resource: { type: 'document' } },
            {},
          ],
        },
        [true, false, false, false],
      ],
      [
        '3.2.7 of each of them',
        {
          subject: { id: 'bob' },
          action: { name: 'read' },
          resource: { id: 'record-1' },
          evaluations: [
            { subject: { type: 'user' }, action: {}, resource: { type: 'record' } },
            { subject: { type: 'user' }, action: { name: 'write' }, resource: { type: 'record' } },
          ],
        },
        [true, false],
      ],
      [
        '3.4.1 an item without a resource',
        { subject, action, options: { evaluations_semantic: 'execute_all' }, evaluations: [{ resource }, {}] },
        [true, false],
      ],
    ])('%s', async (_number, request, expected) => {
      expect(await decisions(request)).toEqual(expected);
    });

    test('3.4.2, 3.4.3 without a list, or with an empty one, it is a single evaluation', async () => {
      for (const evaluations of [undefined, []]) {
        const { status, body } = await gateway(BATCH, { ...of('alice', 'read'), evaluations });
        expect([status, body]).toEqual([200, { decision: true, reason: 'approved', context: { reason: 'approved' } }]);
      }
      expectProblem(await gateway(BATCH, { subject, action, evaluations: [] }), 400, 'invalid_request');
    });

    test.each<[semantic: string | undefined, names: string[], expected: boolean[]]>([
      [undefined, ['read', 'none', 'write'], [true, false, true]],
      ['execute_all', ['read', 'none', 'write'], [true, false, true]],
      ['deny_on_first_deny', ['read', 'none', 'write'], [true, false]],
      ['deny_on_first_deny', ['read', 'write'], [true, true]],
      ['permit_on_first_permit', ['none', 'none', 'read', 'write'], [false, false, true]],
      ['permit_on_first_permit', ['none', 'none'], [false, false]],
    ])('the semantic %s of %j', async (evaluations_semantic, names, expected) => {
      const options = evaluations_semantic && { evaluations_semantic, another_option: 'value' };
      expect(await decisions({ subject, options, evaluations: names.map((name) => item(name)) })).toEqual(expected);
    });

    test('a first item that is invalid counts as the first denial', async () => {
      const options = { evaluations_semantic: 'deny_on_first_deny' };
      expect(await decisions({ subject, options, evaluations: [{}, item('read')] })).toEqual([false]);
    });

    test('an item has the answer of a single evaluation', async () => {
      const { body } = await gateway(BATCH, {
        subject,
        evaluations: [item('read'), item('none'), { action }, { action: { name: 7 }, resource }, 5, null],
      });
      const [first, second, ...wrong] = body.evaluations;
      expect(first).toEqual({ decision: true, reason: 'approved', context: { reason: 'approved' } });
      expect(second).toEqual((await gateway(SINGLE, of('alice', 'none'))).body);
      for (const each of wrong)
        expect(each).toEqual({
          decision: false,
          reason: 'denied',
          context: { reason: 'denied', error: { status: 400, message: expect.stringMatching(/.{10,}/) } },
        });
      expect(wrong.map(({ context }: Json) => context.error.message.split(':')[0])).toEqual([
        'resource',
        'action.name',
        'body',
        'body',
      ]);
    });

    test('AZ-01, AZ-02 items about agents that the requester may not ask about have identical answers, and the others are evaluated', async () => {
      const foreign = await (await world.organisation()).agent({ grants: {} });
      const ask = async (by: (body: string) => Promise<Answer>, ids: string[]) => {
        const evaluations = ids.map((id) => ({ subject: { type: 'user', id } }));
        const { body } = await expectStatus(200, by(named({ action, resource, evaluations })));
        return body.evaluations;
      };
      const unknown = [foreign.id, foreign.agentId, uuidv4()];
      const owner = await ask(
        (body) => organisation.ask('POST', BATCH, JSON.parse(body)),
        ['alice', 'bob', ...unknown],
      );
      const agent = await ask(
        (body) => agents.alice.request('POST', BATCH, { headers: { 'content-type': 'application/json' }, body }),
        ['alice', agents.alice.id, 'bob', ...unknown],
      );
      for (const [answers, theirs] of [
        [owner, 2],
        [agent, 2],
      ] as const) {
        expect(answers.slice(0, theirs).map(({ decision }: Json) => decision)).toEqual([true, true]);
        expect(new Set(answers.slice(theirs).map((each: Json) => JSON.stringify(each))).size).toBe(1);
        expect(answers.at(-1)).toMatchObject({
          decision: false,
          reason: 'denied',
          context: { error: { status: 401 } },
        });
      }
    });

    test('an agent gets the same answers about itself as its gateway, with any platform as default of the batch', async () => {
      const items = ['record-1', 'record-2', 'record-3'].map((id) => ({ resource: { type: 'record', id } }));
      for (const beside of [{}, ...items]) {
        const request = { subject, action, ...beside, evaluations: beside === items[0] ? [{}, ...items] : items };
        const own = await agents.alice.request('POST', BATCH, {
          headers: { 'content-type': 'application/json' },
          body: named(request),
        });
        expect(own.body).toEqual((await gateway(BATCH, request)).body);
        const said = own.body.evaluations.map(({ decision }: Json) => decision);
        expect(said).toEqual(beside === items[0] ? [true, true, false, false] : [true, false, false]);
      }
    });

    test('a batch has at most 100 items, also about as many platforms', async () => {
      const evaluations = Array.from({ length: 100 }, (_, i) => item('read', i % 2 ? 'record-1' : `record-${i}`));
      expect(await decisions({ subject, evaluations })).toEqual(evaluations.map((_each, i) => i % 2 === 1));
      expectProblem(await gateway(BATCH, { subject, evaluations: [...evaluations, {}] }), 400, 'invalid_request');
    });

    test.each<[what: string, request: Json]>([
      ['evaluations that are not a list', { subject, action, resource, evaluations: {} }],
      ['unknown evaluations_semantic', { subject, evaluations: [{}], options: { evaluations_semantic: 'any' } }],
      ['options that are not an object', { subject, evaluations: [{}], options: [] }],
      ['a default subject that is not an object', { subject: 'alice', evaluations: [{ ...of('alice', 'read') }] }],
      [
        'a default subject with a number as its type',
        { subject: { type: 5 }, evaluations: [{ ...of('alice', 'read') }] },
      ],
    ])('%s: 400 for the whole batch', async (_what, request) => {
      expectProblem(await gateway(BATCH, request), 400, 'invalid_request');
    });
  });

  test('Discovery: the metadata has the address at which it was requested, and the endpoints that are served', async () => {
    const answer = await send(`${world.running.baseUrl}/.well-known/authzen-configuration`, {});
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    const { policy_decision_point, access_evaluation_endpoint, access_evaluations_endpoint, ...rest } = answer.body;
    expect([policy_decision_point, rest]).toEqual([world.running.baseUrl, {}]);
    for (const endpoint of [access_evaluation_endpoint, access_evaluations_endpoint])
      expect((await gateway(endpoint.replace(policy_decision_point, ''), of('bob', 'read'))).body.decision).toBe(true);
  });

  test('cases in the form of the interoperability runs have the expected decisions', async () => {
    const cases: { evaluation: Json[]; evaluations: Json[] } = {
      evaluation: (['alice', 'bob'] as const).flatMap((who) =>
        ['read', 'write', 'delete'].flatMap((what) =>
          ['record-1', 'record-2', 'record-3'].map((which) => ({
            request: of(who, what, which),
            expected: which === 'record-1' && (what === 'read' || (what === 'write' && who === 'alice')),
          })),
        ),
      ),
      evaluations: [
        {
          request: {
            subject: { type: 'user', id: 'alice' },
            action: { name: 'write' },
            evaluations: [
              { resource: { type: 'record', id: 'record-1', properties: { ownerID: 'alice@acme.example' } } },
              { resource: { type: 'record', id: 'record-2', properties: { ownerID: 'bob@acme.example' } } },
            ],
          },
          expected: [{ decision: true }, { decision: false }],
        },
      ],
    };
    for (const { request, expected } of cases.evaluation)
      expect([request, (await gateway(SINGLE, request)).body.decision]).toEqual([request, expected]);
    for (const { request, expected } of cases.evaluations)
      expect((await gateway(BATCH, request)).body.evaluations).toMatchObject(expected);
  });
});
