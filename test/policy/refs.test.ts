import { describe, expect, test } from 'vitest';
import {
  type CallAsk,
  type Constraints,
  type GitRef,
  type JsonObject,
  type Method,
  UnreadBody,
} from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { intersectRefs, matchesRef, refPatternProblem } from '../../broker/policy/refs/patterns.ts';
import { refuseRefs } from '../../broker/policy/refs/refs.ts';
import { call } from './world.ts';

const NOTHING_SAID = compilePlatformRules({ kind: 'rest', scopes: {}, graphql: { path: '/graphql' } });
const push = (constraints: Constraints, ...refs: GitRef[]) =>
  refuseRefs(
    constraints,
    NOTHING_SAID,
    call({ method: 'POST', path: '/git/acme/app/git-receive-pack', git: { service: 'git-receive-pack', refs } }),
  );
const ref = (name: string, action: GitRef['action'] = 'update'): GitRef => ({ name, action });

describe('patterns', () => {
  test.each([
    ['main', 'refs/heads/main'],
    ['agent/*', 'refs/heads/agent/x'],
    ['agent/*', 'refs/heads/agent/x.y-z_1'],
    ['agent/**', 'refs/heads/agent/x/y/z'],
    ['agent/fix-*', 'refs/heads/agent/fix-1'],
    ['*/x', 'refs/heads/agent/x'],
    ['**', 'refs/heads/a/b'],
    ['refs/heads/agent/*', 'refs/heads/agent/x'],
    ['refs/tags/v*', 'refs/tags/v1.0'],
    ['refs/tags/**', 'refs/tags/a/b'],
    ['größe/*', 'refs/heads/größe/x'],
  ])('%s matches %s', (pattern, name) => {
    expect(refPatternProblem(pattern)).toBeUndefined();
    expect(matchesRef([pattern], name)).toBe(true);
  });

  test.each([
    ['main', 'refs/heads/main/x'],
    ['main', 'refs/heads/Main'],
    ['main', 'refs/tags/main'],
    ['main', 'main'],
    ['agent/*', 'refs/heads/agent'],
    ['agent/*', 'refs/heads/agent/x/y'],
    ['agent/*', 'refs/heads/Agent/x'],
    ['agent/*', 'refs/heads/agent2/x'],
    ['agent/*', 'refs/heads/x/agent/x'],
    ['agent/**', 'refs/heads/agent'],
    ['**', 'refs/tags/v1'],
    ['**', 'refs/notes/commits'],
    ['**', 'refs/for/main'],
    ['**', 'refs/pull/1/head'],
    ['**', 'refs/replace/x'],
    ['**', 'HEAD'],
    ['**', 'refs/heads/../tags/v1'],
    ['**', 'refs/heads/a..b'],
    ['**', 'refs/heads/a\nb'],
    ['**', 'refs/heads/a b'],
    ['**', 'refs/heads/a\u202eb'],
    ['**', 'refs/heads/'],
    ['**', 'refs/heads//a'],
    ['**', 'refs/heads/a.lock'],
    ['**', 'refs/heads/.a'],
    ['refs/tags/v*', 'refs/heads/v1'],
    ['größe/*', 'refs/heads/gro\u0308ße/x'],
    // Malformed patterns match nothing.
    ['refs/**', 'refs/heads/main'],
    ['refs/*/main', 'refs/heads/main'],
    ['', 'refs/heads/main'],
  ])('%s does not match %j', (pattern, name) => {
    expect(matchesRef([pattern], name)).toBe(false);
  });

  test.each([
    ['refs/notes/*', /outside of refs\/heads/],
    ['refs/**', /outside of refs\/heads/],
    ['refs/*/x', /outside of refs\/heads/],
    ['refs/heads', /outside of refs\/heads/],
    ['heads/main', /write "refs\/heads\/main"/],
    ['tags/v*', /write "refs\/tags\/v\*"/],
    ['agent/**/x', /alone at the end/],
    ['agent/**x', /alone at the end/],
    ['***', /alone at the end/],
    ['', /no name or pattern/],
    ['agent/', /no name or pattern/],
    ['/agent', /no name or pattern/],
    ['a//b', /no name or pattern/],
    ['a b', /no name or pattern/],
    ['a?', /no name or pattern/],
    ['[ab]', /no name or pattern/],
    ['a..b', /no name or pattern/],
    ['a.lock', /no name or pattern/],
    ['x\u200by', /no name or pattern/],
    ['\ud800', /no name or pattern/],
  ])('%j is not a pattern, and the error describes what to write', (pattern, sentence) => {
    expect(refPatternProblem(pattern)).toMatch(sentence);
  });

  test.each([
    [['agent/**'], ['agent/x/*'], ['agent/x/*']],
    [['agent/*'], ['agent/x', 'main'], ['agent/x']],
    [['agent/*'], ['refs/heads/agent/*'], ['agent/*']],
    [['agent/*'], ['agent/**'], ['agent/*']],
    [['a*'], ['*b'], []],
    [['a*b'], ['a*', '*b'], ['a*b']],
    [['**'], ['refs/tags/v1'], []],
    [['refs/tags/*'], ['refs/tags/v1', 'v1'], ['refs/tags/v1']],
    [[], ['**'], []],
  ])('the intersection of %j and %j is %j', (a, b, expected) => {
    expect(intersectRefs(a, b)).toEqual(expected);
    expect(intersectRefs(b, a)).toHaveLength(expected.length);
  });
});

describe('a push', () => {
  const AGENT: Constraints = { refs: ['agent/*'] };

  test('to listed refs is allowed', () => {
    expect(push(AGENT, ref('refs/heads/agent/x'), ref('refs/heads/agent/y', 'delete'))).toBeUndefined();
    expect(push({}, ref('refs/for/main'))).toBeUndefined();
    expect(push({ ref_changes: ['create'] }, ref('refs/notes/x', 'create'))).toBeUndefined();
    expect(push({ ref_changes: ['create', 'update', 'delete'] }, ref('refs/heads/main', 'delete'))).toBeUndefined();
  });

  test('to any other ref is refused by name, even together with listed refs', () => {
    const refused = push(AGENT, ref('refs/heads/agent/x'), ref('refs/heads/main'), ref('refs/tags/v1', 'create'));
    expect(refused).toEqual({
      violating: ['refs/heads/main', 'refs/tags/v1'],
      detail: 'refs/heads/main is not among the refs that the grant allows (agent/*)',
    });
    expect(push({ refs: [] }, ref('refs/heads/agent/x'))).toEqual({
      violating: ['refs/heads/agent/x'],
      detail: 'refs/heads/agent/x is not among the refs that the grant allows (none)',
    });
    const many = Array.from({ length: 64 }, (_, i) => `b${i}`);
    expect(push({ refs: many }, ref('refs/heads/main'))?.detail).toMatch(/\(b0, b1, b2, b3, b4 and 59 more\)$/);
  });

  test('that changes refs in a way that is not allowed is refused', () => {
    const constraints: Constraints = { ...AGENT, ref_changes: ['create', 'update'] };
    expect(push(constraints, ref('refs/heads/agent/x', 'create'))).toBeUndefined();
    expect(push(constraints, ref('refs/heads/agent/x', 'delete'))).toEqual({
      violating: ['refs/heads/agent/x'],
      detail: 'the grant does not allow to delete refs: refs/heads/agent/x',
    });
    expect(push({ ref_changes: [] }, ref('refs/heads/x', 'create'))?.violating).toEqual(['refs/heads/x']);
  });

  test('of many refs, or of one with a long name, is refused in a short sentence', () => {
    const many = Array.from({ length: 2000 }, (_, i) => ref(`refs/heads/x${i}`));
    expect(push(AGENT, ...many)?.violating).toHaveLength(50);
    expect(push(AGENT, ref(`refs/heads/${'x'.repeat(60_000)}`))?.detail.length).toBeLessThan(500);
  });

  test('fetching, the advertisement and the probe write no refs', () => {
    expect(push({ refs: [] })).toBeUndefined();
    const git = { service: 'git-upload-pack' as const, refs: [] };
    for (const one of [
      call({ method: 'GET', path: '/git/acme/app/info/refs', git: { service: 'git-receive-pack', refs: [] } }),
      call({ method: 'POST', path: '/git/acme/app/git-upload-pack', git }),
    ])
      expect(refuseRefs({ refs: [] }, NOTHING_SAID, one)).toBeUndefined();
  });
});

describe('refs written by REST calls, as declared in the manifest', () => {
  const forge = compilePlatformRules({
    kind: 'rest',
    scopes: {},
    refs: {
      'POST /branches': [{ in: 'query', at: 'branch', prefix: 'refs/heads/', action: 'create' }],
      'POST /batch': [{ in: 'body', at: '/updates/*/ref', action: 'update' }],
      'PUT /branches/**/file': [{ in: 'path', prefix: 'refs/heads/', action: 'update' }],
      'POST /merge': 'its target is not in the call',
      'GET /branches/**/touch': [{ in: 'path', prefix: 'refs/heads/', action: 'update' }],
      'POST /issues/**': [],
      'POST /tasks': [
        { in: 'body', at: '/task/worker', values: ['*-Bot', 'helper'], why: 'a bot writes branches' },
        { in: 'body', at: '/branch', prefix: 'refs/heads/', action: 'create' },
      ],
      'POST /tags': [
        { in: 'body', at: '/tag', prefix: 'refs/tags/', action: 'create', unless: { at: '/draft', is: true } },
      ],
      'POST /advisories': [{ in: 'body', at: '/fork', unless: false, why: 'it creates a fork' }],
      'POST /issues/*/branch': [{ in: 'body', at: '/branch', prefix: 'refs/heads/', action: 'create' }],
    },
  });
  const refused = (
    method: Method,
    endpoint: string,
    body?: JsonObject,
    constraints: Constraints = { refs: ['agent/*'] },
  ) => {
    const [path = '', query = ''] = endpoint.split('?');
    return refuseRefs(constraints, forge, call({ method, path, query, body }));
  };

  test('in a query parameter, which must occur once, in its own spelling', () => {
    expect(refused('POST', '/branches?branch=agent/x')).toBeUndefined();
    expect(refused('POST', '/branches?from=main&branch=agent/x')).toBeUndefined();
    expect(refused('POST', '/branches?branch=main')?.violating).toEqual(['refs/heads/main']);
    for (const query of [
      '',
      '?branch=agent/x&branch=main',
      '?branch=agent/x&Branch=main',
      '?Branch=agent/x',
      '?x=1;branch=agent/x;branch=main',
    ])
      expect(refused('POST', `/branches${query}`), query).toBeDefined();
    expect(refused('POST', '/branches?branch=agent/x', { branch: 'main' })).toBeDefined();
  });

  test('in all members to which a pointer leads', () => {
    const updates = (...refs: unknown[]) => ({ updates: refs.map((one) => ({ ref: one })) }) as JsonObject;
    expect(refused('POST', '/batch', updates('refs/heads/agent/x', 'refs/heads/agent/y'))).toBeUndefined();
    expect(refused('POST', '/batch', updates('refs/heads/agent/x', 'refs/heads/main'))?.violating).toEqual([
      'refs/heads/main',
    ]);
    for (const body of [
      updates(),
      updates('refs/heads/agent/x', null),
      updates('refs/heads/agent/x', 7),
      { updates: [{ ref: 'refs/heads/agent/x' }, {}] },
      { updates: [null] },
      { updates: null },
      {},
    ])
      expect(refused('POST', '/batch', body), JSON.stringify(body)).toBeDefined();
  });

  test('a name that a server may read as another ref is refused, with what to write', () => {
    for (const name of ['refs/heads/agent/x', 'heads/agent/x', 'agent/..', ''])
      expect(refused('POST', '/issues/7/branch', { branch: name })).toEqual({
        violating: [],
        detail: `${JSON.stringify(name)} is no plain name of a ref at \`/branch\` under refs/heads/`,
      });
    expect(refused('POST', '/batch', { updates: [{ ref: 'agent/x' }] })?.detail).toMatch(
      /at `\/updates\/\*\/ref`; write it in full/,
    );
  });

  test('a body that was not read may name any ref, also beside a query that names one', () => {
    const body = new UnreadBody('it is too large');
    for (const [path, query] of [
      ['/branches', 'branch=agent/x'],
      ['/batch', ''],
      ['/tags', ''],
    ] as const)
      expect(refuseRefs({ refs: ['agent/*'] }, forge, call({ method: 'POST', path, query, body })), path).toEqual({
        violating: [],
        detail: 'it is too large',
        unread: true,
      });
  });

  test('a ref is not written where a member has the value of `unless`, in a form also as a text', () => {
    const isWritten = (body: JsonObject, more: Partial<CallAsk> = {}, rules = forge) =>
      refuseRefs({ refs: [] }, rules, call({ method: 'POST', path: '/tags', body, ...more })) !== undefined;
    expect(isWritten({ tag: 'v1', draft: true })).toBe(false);
    for (const draft of [false, 'true', 1, null]) expect(isWritten({ tag: 'v1', draft }), String(draft)).toBe(true);
    for (const body of [
      { tag: 'v1', Draft: true },
      { tag: 'v1', draft: true, Draft: false },
    ])
      expect(isWritten(body), JSON.stringify(body)).toBe(true);
    expect(isWritten({ tag: 'v1', draft: true }, { query: 'draft=false' })).toBe(true);
    const text = { tag: 'v1', draft: 'true' };
    const ofForms = { ...forge, isForm: true };
    expect([isWritten(text, { isForm: true }), isWritten(text, {}, ofForms)]).toEqual([false, false]);
    expect(isWritten(text, { isForm: false }, ofForms)).toBe(true);
  });

  test('in the path, of a GET too', () => {
    expect(refused('PUT', '/branches/agent/x/file')).toBeUndefined();
    expect(refused('PUT', '/branches/main/file')?.violating).toEqual(['refs/heads/main']);
    expect(refused('GET', '/branches/main/touch')?.violating).toEqual(['refs/heads/main']);
    expect(refused('GET', '/branches/main')).toBeUndefined();
    for (const path of ['/branches/agent/x/file/', '/branches/agent/x/File', '/branches/agent/x/file.json'])
      expect(refused('PUT', path), path).toBeDefined();
  });

  test('other spellings of a path that writes are not covered by a wider rule that writes nothing', () => {
    for (const end of ['', '/', '.', '.json', '.JSON', ';v=1']) {
      const path = `/issues/7/branch${end}`;
      expect(refused('POST', path, { branch: 'main' })?.violating, path).toEqual(['refs/heads/main']);
      expect(refused('POST', path, { branch: 'agent/x' }), path).toBeUndefined();
    }
  });

  test('a member of the body that makes the written refs unknown, in addition to a ref', () => {
    const asked = (task: JsonObject[string], constraints?: Constraints) =>
      refused('POST', '/tasks', { task, branch: 'agent/x' }, constraints);
    for (const task of [{ worker: 'ci-bot' }, { Worker: ['ann', ' HELPER'] }, [{}, { worker: { name: '@helper' } }]]) {
      expect(asked(task), JSON.stringify(task)).toEqual({ violating: [], detail: 'a bot writes branches' });
      expect(asked(task, { ref_changes: ['create'] })?.detail).toBe('a bot writes branches');
    }
    for (const task of [null, 'ci-bot', {}, { worker: null }, { worker: 'ann' }])
      expect(asked(task), JSON.stringify(task)).toBeUndefined();
    expect(refused('POST', '/tasks', { branch: 'main' })?.violating).toEqual(['refs/heads/main']);
    const unread = new UnreadBody('it is too large');
    const call_ = call({ method: 'POST', path: '/tasks', body: unread });
    expect(refuseRefs({ refs: [] }, forge, call_)).toEqual({ violating: [], detail: 'it is too large', unread: true });
  });

  test('a member of the body that leaves open whether refs are written', () => {
    const why = 'it creates a fork';
    const asked = (more: Partial<CallAsk>) =>
      refuseRefs({ refs: [] }, forge, call({ method: 'POST', path: '/advisories', ...more }))?.detail;
    for (const body of [undefined, {}, { fork: false }]) expect(asked({ body })).toBeUndefined();
    for (const fork of [true, 'false', null, 0]) expect(asked({ body: { fork } })).toBe(why);
    expect(asked({ body: { fork: 'false' }, isForm: true })).toBeUndefined();
    for (const fork of ['true', '0']) expect(asked({ body: { fork }, isForm: true })).toBe(why);
    expect(asked({ body: new UnreadBody('it is too large') })).toBe('it is too large');
    for (const query of ['fork=1', 'fork[]=1', 'fork.x=1', 'f.ork=1', 'x=1;fork=1'])
      expect(asked({ query }), query).toMatch(/^the query must not name/);
    expect(asked({ query: 'x=fork' })).toBeUndefined();
  });

  test('a sentence in place of refs, an empty list, and an operation without a rule', () => {
    expect(refused('POST', '/merge')).toEqual({ violating: [], detail: 'its target is not in the call' });
    expect(refused('POST', '/issues/7/comments')).toBeUndefined();
    expect(refused('POST', '/other')?.detail).toMatch(/not known/);
  });

  test('the kind of change is checked even when the names are unknown', () => {
    const may = (...changes: NonNullable<Constraints['ref_changes']>): Constraints => ({ ref_changes: changes });
    expect(refused('POST', '/branches', {}, may('create'))).toBeUndefined();
    expect(refused('POST', '/branches', {}, may('update'))?.detail).toBe('the grant does not allow to create refs');
    expect(refused('PUT', '/branches/main/file', {}, may('create'))?.violating).toEqual(['refs/heads/main']);
    expect(refused('POST', '/merge', {}, may('create', 'update'))).toBeDefined();
    expect(refused('POST', '/merge', {}, may('create', 'update', 'delete'))).toBeUndefined();
  });
});

describe('an operation is refused unless it is known to write no refs', () => {
  test.each(['refs', 'ref_changes'] as const)('on a grant with %s', (constraint) => {
    const constraints: Constraints = { [constraint]: [] };
    const refused = (method: 'GET' | 'POST', path: string) =>
      refuseRefs(constraints, NOTHING_SAID, call({ method, path }))?.detail;
    expect(refused('GET', '/repos/acme/app/contents/x')).toBeUndefined();
    expect(refused('POST', '/repos/acme/app/something')).toMatch(/not known which refs/);
    expect(refused('POST', '/git/acme/app/git-receive-pack')).toMatch(/not known which refs/);
    expect(refused('POST', '/graphql')).toMatch(/GraphQL is refused as a whole/);
  });
});
