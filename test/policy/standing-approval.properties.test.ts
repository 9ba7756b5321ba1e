import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide } from '../../broker/policy/decide.ts';
import type { Ask, Facts, JsonObject, JsonValue, Repeat, RuleSource, Verdict } from '../../broker/policy/facts.ts';
import { offeredMembers } from '../../broker/policy/free-members.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { compileGuardrails, compilePolicy } from '../../broker/policy/rules/compile.ts';
import type { Free, StandingApproval, Written } from '../../broker/policy/standing-terms.ts';
import { sized } from '../world/runner/thorough.ts';
import { agent, grant, NOW, parent } from './world.ts';

const rules = compilePlatformRules({
  kind: 'rest',
  scopes: {
    'crm:write': ['POST /messages', 'POST /boards/*/notes', 'POST /boards/*/notes/*'],
    'crm:other': ['POST /messages'],
  },
  free: {
    'POST /messages': ['/text', '/blocks', { member: '/amount', at_most: true }, '/meta/title', '?note'],
    'POST /boards/*/notes/*': ['2', '/text'],
  },
});

const POLICY: RuleSource[] = [{ effect: 'allow' }, { name: 'asks', effect: 'require_approval', scopes: ['crm:write'] }];
const GUARDRAILS: RuleSource[] = [
  { name: 'lasting', effect: 'require_approval', endpoints: ['/messages'], remember: true },
];

const world: Facts = {
  agent: agent(),
  platform: { platformId: 'crm', name: 'CRM', version: 3, suspended: false, defaultConnectionId: 'c1', rules },
  grants: [grant({ scopes: ['crm:write', 'crm:other'], requireApproval: true })],
  policy: compilePolicy({ id: 'p1', name: 'careful', version: 7, rules: POLICY }),
  guardrails: compileGuardrails({ version: 2, rules: GUARDRAILS }),
  breakers: [],
};

type Request = { path: string; query: string; headers: Record<string, string>; body: JsonObject };
const END = NOW + 60_000;

function askOf({ path, query, headers, body }: Request, repeat: Partial<Repeat> = {}): Ask {
  const written: Written = {
    door: 'actions',
    method: 'POST',
    path,
    query,
    headers,
    body: { kind: 'members', as: 'platform', value: body, headers: {} },
  };
  return {
    platformId: 'crm',
    scope: 'crm:write',
    call: { method: 'POST', path, query, headers, body },
    repeat: {
      written,
      sessionId: 's1',
      caller: { personId: 'ann', verified: true, namedBy: 'idp' },
      tool: null,
      ...repeat,
    },
  };
}

/** Creates a standing approval from the held call of a request. `tick`: selects the members that may differ. */
function approve(request: Request, tick: (free: Free) => boolean, session = false): StandingApproval {
  const ask = askOf(request);
  const held = decide(world, ask, NOW) as Extract<Verdict, { kind: 'hold' }>;
  expect(held.kind).toBe('hold');
  const written = ask.repeat?.written as Written;
  const offered = offeredMembers(rules, ask.call as never, written).map(({ member, place, atMost }) => ({
    member,
    place,
    ...(atMost !== undefined && { atMost }),
  }));
  // Serialised and parsed, as in the store.
  const basis = JSON.parse(JSON.stringify(held.basis));
  return { id: 'sa', expiresAt: END, terms: { basis, free: offered.filter(tick), session } };
}

const judge = (approval: StandingApproval, ask: Ask, facts: Facts = world, now = NOW) =>
  decide({ ...facts, standing: [approval] }, ask, now).kind;

const word = fc.stringMatching(/^[a-z]{1,6}$/);
const value: fc.Arbitrary<JsonValue> = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>;
const message: fc.Arbitrary<Request> = fc.record({
  path: fc.constant('/messages'),
  query: fc.constantFrom('', 'note=a', 'note=a&b=1', 'b=1'),
  headers: fc.constantFrom<Record<string, string>>({}, { 'x-mode': 'loud' }, { 'x-mode': 'loud', accept: 'a/b' }),
  body: fc
    .record(
      {
        to: word,
        text: word,
        blocks: fc.array(word),
        amount: fc.integer({ min: 1, max: 1_000 }),
        meta: fc.record({ title: word, visible: fc.boolean() }),
        extra: value,
      },
      { requiredKeys: ['to', 'text'] },
    )
    .map((body) => JSON.parse(JSON.stringify(body)) as JsonObject),
});
const note: fc.Arbitrary<Request> = fc.record({
  path: fc.tuple(word, word).map(([board, id]) => `/boards/${board}/notes/${id}`),
  query: fc.constant(''),
  headers: fc.constant({}),
  body: fc.record({ text: word, board: word }),
});
const request = fc.oneof({ weight: 3, arbitrary: message }, { weight: 1, arbitrary: note });

/** Returns a call that differs from the held call in a way that no ticked member covers; undefined when this change is not possible. */
type Mutation = (
  held: Request,
  seed: number,
) => Ask | { facts: Facts } | { now: number } | { approval: Partial<StandingApproval> } | undefined;
const changed = (held: Request, more: Partial<Request>): Ask => askOf({ ...held, ...more });
const withBody = (held: Request, more: JsonObject): Ask => changed(held, { body: { ...held.body, ...more } });
const without = (held: Request, name: string): Ask => {
  const { [name]: _gone, ...body } = held.body;
  return changed(held, { body });
};
const query = (held: Request, more: string) =>
  changed(held, { query: held.query === '' ? more : `${held.query}&${more}` });
const pairs = (held: Request) => (held.query === '' ? [] : held.query.split('&'));

const MUTATIONS: Record<string, Mutation> = {
  'letter case of the path': (held) => changed(held, { path: held.path.toUpperCase() }),
  'an escape in the path': (held) => changed(held, { path: held.path.replace('s', '%73') }),
  'a longer path': (held) => changed(held, { path: `${held.path}/` }),
  'another value of a path segment that is not free': (held) =>
    held.path.startsWith('/boards/')
      ? changed(held, { path: held.path.replace(/boards\/[a-z]+/, 'boards/0') })
      : undefined,
  'a free segment that contains an escaped slash': (held) =>
    held.path.startsWith('/boards/') ? changed(held, { path: `${held.path}%2Fx` }) : undefined,
  'a free segment that is `..`': (held) =>
    held.path.startsWith('/boards/') ? changed(held, { path: held.path.replace(/[a-z]+$/, '..') }) : undefined,
  'an extra query member': (held) => query(held, 'z=1'),
  'a missing query member': (held) =>
    held.query === '' ? undefined : changed(held, { query: pairs(held).slice(1).join('&') }),
  'a query member twice': (held) => (held.query === '' ? undefined : query(held, pairs(held)[0] as string)),
  'a free query member twice': (held) => (held.query.includes('note=') ? query(held, 'note=b') : undefined),
  'a free query member that smuggles another': (held) =>
    held.query.includes('note=') ? changed(held, { query: held.query.replace('note=a', 'note=a;to=evil') }) : undefined,
  'a free query member that smuggles another with an escape': (held) =>
    held.query.includes('note=')
      ? changed(held, { query: held.query.replace('note=a', 'note=a%26to=evil') })
      : undefined,
  'letter case of a query name': (held) =>
    held.query === ''
      ? undefined
      : changed(held, { query: held.query.replace(/^[a-z]+/, (name) => name.toUpperCase()) }),
  'query members in another order': (held) =>
    pairs(held).length < 2 ? undefined : changed(held, { query: pairs(held).toReversed().join('&') }),
  'another value of a query member that is not free': (held) =>
    held.query.includes('b=1') ? changed(held, { query: held.query.replace('b=1', 'b=2') }) : undefined,
  'an extra member': (held) => withBody(held, { cc: 'evil' }),
  'an extra member that differs from a free one in letter case only': (held) => withBody(held, { Text: 'x' }),
  'an extra member beside a free one': (held) =>
    held.body.meta === undefined ? undefined : withBody(held, { meta: { ...(held.body.meta as JsonObject), more: 1 } }),
  'an extra member named __proto__': (held) =>
    changed(held, { body: JSON.parse(JSON.stringify(held.body).replace(/}$/, ',"__proto__":1}')) }),
  'a missing member': (held) => without(held, Object.keys(held.body)[0] as string),
  'a missing free member': (held) => without(held, 'text'),
  'another value of a member that is not free': (held) =>
    withBody(held, held.body.to === undefined ? { board: 'evil' } : { to: 'evilevil' }),
  'another value of a member in the same object as a free one': (held) =>
    held.body.meta === undefined
      ? undefined
      : withBody(held, {
          meta: { ...(held.body.meta as JsonObject), visible: !(held.body.meta as { visible: boolean }).visible },
        }),
  'a free member of another type': (held, seed) =>
    withBody(held, { text: ([1, null, true, ['x'], { a: 'x' }] as const)[seed % 5] as JsonValue }),
  'a number above its limit': (held) =>
    typeof held.body.amount === 'number' ? withBody(held, { amount: held.body.amount + 1 }) : undefined,
  'a number just above its limit': (held) =>
    typeof held.body.amount === 'number' ? withBody(held, { amount: held.body.amount + 0.001 }) : undefined,
  'a number of zero or less': (held, seed) =>
    held.body.amount === undefined ? undefined : withBody(held, { amount: [0, -1, -0][seed % 3] as number }),
  'a number as a string': (held) =>
    held.body.amount === undefined ? undefined : withBody(held, { amount: String(held.body.amount) }),
  'another header': (held) => changed(held, { headers: { ...held.headers, 'x-to': 'evil' } }),
  'another value of a header': (held) =>
    held.headers['x-mode'] === undefined
      ? undefined
      : changed(held, { headers: { ...held.headers, 'x-mode': 'still' } }),
  'a missing header': (held) => (held.headers['x-mode'] === undefined ? undefined : changed(held, { headers: {} })),
  'another connection': () => ({
    facts: { ...world, grants: [grant({ scopes: ['crm:write'], requireApproval: true, connectionId: 'c2' })] },
  }),
  'another default connection': () => ({
    facts: { ...world, platform: { ...world.platform, defaultConnectionId: 'c9' } as never },
  }),
  'another platform': () => ({
    facts: {
      ...world,
      platform: { ...world.platform, platformId: 'erp' } as never,
      grants: [grant({ platformId: 'erp', scopes: ['crm:write'], requireApproval: true })],
    },
  }),
  'another manifest': () => ({ facts: { ...world, platform: { ...world.platform, version: 4 } as never } }),
  'a wider grant': () => ({
    facts: { ...world, grants: [grant({ scopes: ['crm:write', 'crm:other', 'crm:x'], requireApproval: true })] },
  }),
  'another constraint of the grant': () => ({
    facts: {
      ...world,
      grants: [
        grant({
          scopes: ['crm:write', 'crm:other'],
          requireApproval: true,
          constraints: { allow_repo_creation: true },
        }),
      ],
    },
  }),
  'a grant with another expiry': () => ({
    facts: { ...world, grants: [grant({ scopes: ['crm:write', 'crm:other'], requireApproval: true, expiresAt: END })] },
  }),
  'another grant with the same terms': () => ({
    facts: { ...world, grants: [grant({ id: 'grant-2', scopes: ['crm:write', 'crm:other'], requireApproval: true })] },
  }),
  'another version of the policy': () => ({
    facts: { ...world, policy: compilePolicy({ id: 'p1', name: 'careful', version: 8, rules: POLICY }) },
  }),
  'another policy': () => ({
    facts: { ...world, policy: compilePolicy({ id: 'p2', name: 'careful', version: 7, rules: POLICY }) },
  }),
  'another version of the guardrails': () => ({
    facts: { ...world, guardrails: compileGuardrails({ version: 3, rules: GUARDRAILS }) },
  }),
  'a new rule that requires approval, in a new version': () => ({
    facts: {
      ...world,
      policy: compilePolicy({
        id: 'p1',
        name: 'careful',
        version: 8,
        rules: [...POLICY, { effect: 'require_approval' }],
      }),
    },
  }),
  'a new rule that requires approval, in the same version': () => ({
    facts: {
      ...world,
      policy: compilePolicy({
        id: 'p1',
        name: 'careful',
        version: 7,
        rules: [...POLICY, { effect: 'require_approval' }],
      }),
    },
  }),
  'a rule of the same name in another place': () => ({
    facts: { ...world, policy: compilePolicy({ id: 'p1', name: 'careful', version: 7, rules: POLICY.toReversed() }) },
  }),
  'a new guardrail that requires approval': () => ({
    facts: {
      ...world,
      guardrails: compileGuardrails({
        version: 2,
        rules: [...GUARDRAILS, { name: 'each time', effect: 'require_approval' }],
      }),
    },
  }),
  'another agent': () => ({ facts: { ...world, agent: agent({ id: 'another' }) } }),
  'a child of the agent': () => ({
    facts: { ...world, agent: agent({ parent: parent({ grants: [grant({ scopes: ['crm:write', 'crm:other'] })] }) }) },
  }),
  'another person': (held) => askOf(held, { caller: { personId: 'bob', verified: true, namedBy: 'idp' } }),
  'the same person, asserted': (held) => askOf(held, { caller: { personId: 'ann', verified: false, namedBy: 'idp' } }),
  'the same person by another issuer': (held) =>
    askOf(held, { caller: { personId: 'ann', verified: true, namedBy: 'evil' } }),
  'a call without a caller': (held) => askOf(held, { caller: null }),
  'another tool definition': (held) => askOf(held, { tool: 'changed' }),
  'another entry point': (held) =>
    askOf(held, { written: { ...(askOf(held).repeat?.written as Written), door: 'raw' } }),
  'another way to write the body': (held) =>
    askOf(held, {
      written: {
        ...(askOf(held).repeat?.written as Written),
        body: { kind: 'members', as: 'form', value: held.body, headers: {} },
      },
    }),
  'a body that was not read': (held) =>
    askOf(held, { written: { ...(askOf(held).repeat?.written as Written), body: { kind: 'unread' } } }),
  'a call that cannot be compared with what is sent': (held) => {
    const { repeat: _gone, ...ask } = askOf(held);
    return ask;
  },
  'exactly at the expiry': () => ({ now: END }),
  'after the expiry': () => ({ now: END + 1 }),
};

function outcomeOf(
  mutation: Mutation,
  held: Request,
  approval: StandingApproval,
  seed: number,
): Verdict['kind'] | undefined {
  const made = mutation(held, seed);
  if (made === undefined) return undefined;
  if ('facts' in made) {
    const platformId = made.facts.platform?.platformId ?? '';
    return judge(approval, { ...askOf(held), platformId }, made.facts);
  }
  if ('now' in made) return judge(approval, askOf(held), world, made.now);
  if ('approval' in made) return judge({ ...approval, ...made.approval }, askOf(held));
  return judge(approval, made);
}

const allTicked = () => true;

describe('a standing approval', () => {
  test('allows an equal call, whichever members are ticked', () => {
    fc.assert(
      fc.property(request, fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }), (held, ticks) => {
        let at = 0;
        expect(
          judge(
            approve(held, () => ticks[at++ % 6] === true),
            askOf(held),
          ),
        ).toBe('allow');
      }),
    );
  });

  test('allows a call that differs in ticked members only, and none that differs in another one', () => {
    fc.assert(
      fc.property(message, word, fc.array(word), fc.integer({ min: 1, max: 1_000 }), (held, text, blocks, lower) => {
        const other: Request = {
          ...held,
          query: held.query.replace('note=a', 'note=b%20c'),
          body: {
            ...held.body,
            text: `${text} and more`,
            ...(held.body.blocks !== undefined && { blocks: [...blocks, 'x'] }),
            ...(typeof held.body.amount === 'number' && { amount: Math.min(lower, held.body.amount) }),
            ...(held.body.meta !== undefined && { meta: { ...(held.body.meta as JsonObject), title: 'other' } }),
          },
        };
        const ask = askOf(other);
        expect(judge(approve(held, allTicked), ask)).toBe('allow');
        expect(
          judge(
            approve(held, () => false),
            ask,
          ),
        ).toBe('hold');
        expect(
          judge(
            approve(held, ({ member }) => member !== '/text'),
            ask,
          ),
        ).toBe('hold');
      }),
    );
  });

  test('allows a ticked segment of the path to differ', () => {
    fc.assert(
      fc.property(note, word, (held, id) => {
        const ask = changed(held, { path: held.path.replace(/[a-z]+$/, `${id}7`) });
        expect(judge(approve(held, allTicked), ask)).toBe('allow');
        expect(
          judge(
            approve(held, ({ member }) => member !== '2'),
            ask,
          ),
        ).toBe('hold');
      }),
    );
  });

  test.each(Object.entries(MUTATIONS))('does not allow: %s', (_name, mutation) => {
    let seen = 0;
    fc.assert(
      fc.property(request, fc.nat(), fc.boolean(), (held, seed, isTicked) => {
        const outcome = outcomeOf(
          mutation,
          held,
          approve(held, () => isTicked),
          seed,
        );
        if (outcome === undefined) return;
        seen++;
        // A path that no scope covers is refused, not held.
        expect(outcome).not.toBe('allow');
      }),
      { numRuns: sized(20, 60) },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('for a session covers calls of that session only', () => {
    fc.assert(
      fc.property(request, (held) => {
        const approval = approve(held, allTicked, true);
        expect(judge(approval, askOf(held))).toBe('allow');
        expect(judge(approval, askOf(held, { sessionId: 's2' }))).toBe('hold');
        expect(judge(approval, askOf(held, { sessionId: null }))).toBe('hold');
        expect(judge(approve(held, allTicked), askOf(held, { sessionId: 's2' }))).toBe('allow');
      }),
    );
  });

  test('does not cover a guardrail that asks each time', () => {
    const strict = compileGuardrails({ version: 2, rules: GUARDRAILS.map(({ remember: _not, ...rule }) => rule) });
    const held: Request = { path: '/messages', query: '', headers: {}, body: { to: 'a', text: 'b' } };
    const basis = (decide({ ...world, guardrails: strict }, askOf(held), NOW) as { basis?: never }).basis;
    const approval: StandingApproval = {
      id: 'sa',
      expiresAt: END,
      terms: { basis: basis as never, free: [], session: false },
    };
    expect(judge(approval, askOf(held), { ...world, guardrails: strict })).toBe('hold');
  });

  test('changes no refusal: suspended agents and platforms, rules that deny, grants without the scope', () => {
    fc.assert(
      fc.property(request, (held) => {
        const approval = approve(held, allTicked);
        const denied: Facts[] = [
          { ...world, agent: agent({ status: 'suspended' }) },
          { ...world, platform: { ...world.platform, suspended: true } as never },
          {
            ...world,
            policy: compilePolicy({ id: 'p1', name: 'careful', version: 7, rules: [...POLICY, { effect: 'deny' }] }),
          },
          { ...world, grants: [grant({ scopes: ['crm:other'], requireApproval: true })] },
        ];
        for (const facts of denied) expect(judge(approval, askOf(held), facts)).toBe('deny');
      }),
      { numRuns: sized(8, 20) },
    );
  });

  test('does not apply to a question without a call', () => {
    const held: Request = { path: '/messages', query: '', headers: {}, body: { to: 'a', text: 'b' } };
    const { call: _call, ...question } = askOf(held);
    expect(judge(approve(held, allTicked), question)).toBe('hold');
  });
});
