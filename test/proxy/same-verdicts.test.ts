/** /proxy and POST /v1/actions give the same verdict about every operation of every built-in platform. */
import { describe, expect, test } from 'vitest';
import { judgeBody } from '../../broker/calls/judge-body.ts';
import { rawAction } from '../../broker/calls/raw-request.ts';
import { inferScope } from '../../broker/calls/raw-scope.ts';
import { askOf, readCall } from '../../broker/calls/read-call.ts';
import { encodeForm } from '../../broker/egress/credential-search/form.ts';
import { partsProblem } from '../../broker/egress/parts.ts';
import type { LoadedFacts } from '../../broker/facts/facts.ts';
import { BUILTIN_NAMES, type BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { compileManifest, Manifest, type ManifestInput } from '../../broker/platforms/manifest.ts';
import { bodyKinds } from '../../broker/policy/body-kinds.ts';
import { decide } from '../../broker/policy/decide.ts';
import type {
  Constraints,
  Facts,
  JsonObject,
  JsonValue,
  Method,
  RuleSource,
  Verdict,
} from '../../broker/policy/facts.ts';
import { namesCall } from '../../broker/policy/operation.ts';
import type { Operation, PlatformRules } from '../../broker/policy/platform-rules.ts';
import { UNLIMITED } from '../../broker/runtime/long-bodies.ts';
import type { Action } from '../../broker/wire/action.ts';
import { manifestOf, rulesOf } from '../platforms/classified.ts';
import { facts, grant, guardrailsOf, NOW, policyOf } from '../policy/world.ts';
import { makeRandom } from '../world/random.ts';
import { sized } from '../world/runner/thorough.ts';

const RULES: RuleSource[] = [
  { effect: 'allow' },
  { effect: 'require_approval', methods: ['DELETE'] },
  { effect: 'deny', when: 'has(request.body.amount) && request.body.amount == 13' },
  { effect: 'require_approval', when: 'has(request.body.draft) && request.body.draft == true' },
  { effect: 'require_approval', when: 'has(request.body.note) && request.body.note == null' },
  { effect: 'deny', when: 'has(request.query.force) && request.query.force == "13"' },
];

const GUARDRAILS: RuleSource[] = [
  { name: 'puts', effect: 'require_approval', methods: ['PUT'] },
  { name: 'refs', effect: 'deny', when: 'has(request.body.ref) && request.body.ref == "refs/heads/x"' },
];

const POLICY = policyOf(...RULES);
const GUARDED = guardrailsOf(...GUARDRAILS);

/** Paths that a grant allows; `*` of an operation stands for `x1`. */
const CONSTRAINTS: Constraints[] = [
  {},
  { repos: ['x1/x1'] },
  { repos: ['acme/*'], allow_repo_creation: true },
  { refs: ['agent/*', 'x'] },
  { repos: ['x1/*'], refs: ['x'], ref_changes: ['create'] },
  { recipients: ['C1', '@acme.example'] },
];

/** Members of a body, in any encoding. */
const OBJECTS: readonly JsonObject[] = [
  {},
  { amount: 13 },
  { amount: 12, channel: 'C1', ref: 'refs/heads/x', paths: ['a'] },
  { draft: true, amount: 1.5 },
  { draft: false, note: null },
];

const DOCUMENTS = [
  '{"query":"query { issues { nodes { id } } }"}',
  '{"query":"query { viewer { login } }"}',
  '{"query":"mutation { issueCreate(input: {}) { success } }"}',
  '{"query":"mutation { anything }"}',
  '{"query":"{"}',
];

/**
 * Query strings: names that rules read there, names that could be mistaken for a body member, and queries that every entry point refuses.
 */
const QUERIES = [
  ...[
    'page=2&per_page=100',
    'force=13',
    'force=12&force=13',
    'amount=13',
    'draft=true',
    'ref=refs/heads/x',
    'channel=C2',
  ],
  ...['a%5Bb%5D=1&a[c]=', 'a;b=1', '_method=DELETE', 'a=%zz', 'access_token=x', "a='"],
];

/** One body as an agent writes it, and as a client of the platform does. */
type Sent = { text: string; type: string; asked?: { data?: unknown; encoding?: 'base64' } };

const json = (text: string): Sent => ({ text, type: 'application/json' });

/** An object in every encoding that an operation may accept; undefined when it cannot be encoded so. */
const WRITTEN: Readonly<Record<'json' | 'form' | 'multipart', (members: JsonObject) => Sent | undefined>> = {
  json: (members) => json(JSON.stringify(members)),
  form: (members) => {
    const form = encodeForm(members);
    return form.ok
      ? { text: form.body, type: 'application/x-www-form-urlencoded', asked: { data: members } }
      : undefined;
  },
  multipart: (members) => {
    if (partsProblem(members) !== undefined) return undefined;
    const parts = Object.entries(members).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
    const lines = parts.map(
      ([name, value]) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    );
    return { text: `${lines.join('')}--x--\r\n`, type: 'multipart/form-data; boundary=x', asked: { data: members } };
  },
};
const OTHERS: Readonly<Record<'list' | 'text' | 'bytes', readonly Sent[]>> = {
  list: ['[]', '[{"amount":13}]'].map(json),
  text: [{ text: 'amount', type: 'text/plain; charset=utf-8', asked: { data: 'amount' } }],
  bytes: [{ text: '\u0001', type: 'application/octet-stream', asked: { data: 'AQ==', encoding: 'base64' } }],
};

/** A platform with all body features: no built-in one combines content scopes, refs and recipients in forms and multipart. */
const OWN = {
  kind: 'rest',
  base_url: 'https://own.example',
  auth: { type: 'bearer' },
  body: 'form',
  bodies: { 'POST /parts': 'multipart', 'POST /json': ['json', 'list'], 'PUT /files/*': ['text', 'bytes'] },
  scopes: {
    'own:read': ['GET /**'],
    'own:write': ['POST /form', 'POST /parts', 'POST /json', 'PUT /files/*', 'PATCH /form/*'],
    'own:trash': ['DELETE /form'],
    'own:level': [],
    'own:secret': [],
  },
  content_scopes: Object.fromEntries(
    ['POST /form', 'POST /parts', 'POST /json', 'PATCH /form/*'].map((operation) => [
      operation,
      [
        { pointer: '/trash', scope: 'own:trash' },
        { pointer: '/level', unless: [1, true, 'low'], scope: 'own:level' },
        { pointer: '/path', paths: ['/secret/**'], scope: 'own:secret' },
        { pointer: '/session', in: 'query', scope: null },
      ],
    ]),
  ),
  recipients: {
    'POST /form': [{ pointer: '/channel', format: 'id' }],
    'POST /parts': [{ pointer: '/channel', format: 'id' }],
  },
  refs: Object.fromEntries(
    ['POST /form', 'POST /parts', 'POST /json'].map((operation) => [
      operation,
      [{ in: 'body', at: '/ref', action: 'update', unless: { at: '/draft', is: true } }],
    ]),
  ),
} satisfies ManifestInput;

type Judged = Pick<Verdict, 'kind' | 'reason'> & { matched: readonly string[] };
/** `invalid`: the error code of a malformed call. */
type Told = Judged | { invalid: string };

describe.each([...BUILTIN_NAMES, 'own'] as const)('%s', (name: BuiltinName | 'own') => {
  const manifest = name === 'own' ? Manifest.parse(OWN) : manifestOf(name);
  const rules = name === 'own' ? compileManifest('own', manifest) : rulesOf(name);
  const operations = [...rules.scopes].flatMap(([scope, all]) =>
    all.flatMap((one) => (one.kind === 'http' ? [{ scope, method: one.method, path: pathOf(one.path.segments) }] : [])),
  );
  if (rules.kind === 'graphql' || rules.graphqlPath !== undefined)
    for (const scope of rules.scopes.keys()) operations.push({ scope, method: 'POST', path: rules.graphqlPath ?? '/' });
  const platformOf = (scopes: readonly string[], constraints: Constraints, isGuarded: boolean): LoadedFacts => {
    const found: Facts = facts({
      platform: { platformId: 'crm', name, version: 1, suspended: false, defaultConnectionId: 'c', rules },
      grants: [grant({ scopes, constraints })],
      policy: POLICY,
      ...(isGuarded && { guardrails: GUARDED }),
    });
    return { facts: found, platform: { manifest, rules } as LoadedFacts['platform'], connections: new Map() };
  };

  const byActions = async (
    loaded: LoadedFacts,
    method: Method,
    endpoint: string,
    scope: string,
    body: Sent,
  ): Promise<Told> => {
    const { asked = body.text === '' ? {} : { data: JSON.parse(body.text) } } = body;
    const action = { platform: 'crm', endpoint, method, scope, ...asked } as Action;
    const read = await readCall(action, loaded, { isGit: false, parsing: UNLIMITED });
    return read.ok ? told(decide(loaded.facts, askOf(action, read.call), NOW)) : { invalid: read.code };
  };
  const byProxy = async (
    loaded: LoadedFacts,
    method: Method,
    endpoint: string,
    { text: body, type }: Sent,
  ): Promise<{ told: Told; scope: string }> => {
    const bodyHeaders = { 'content-type': type };
    const judged = judgeBody(bodyHeaders, Buffer.from(body));
    if (!judged.ok) return { told: { invalid: 'invalid_request' }, scope: '' };
    const bytes = Buffer.from(body);
    const raw = {
      method,
      bodyHeaders,
      body: body === '' ? ({ kind: 'none' } as const) : ({ kind: 'whole', bytes } as const),
      judged: judged.judged,
    };
    const asked = rawAction(raw, { platform: 'crm', endpoint, headers: {}, connectionId: 'c' });
    const { connection_id: _, ...action } = asked;
    const read = await readCall(action, loaded, { isGit: false, raw, parsing: UNLIMITED });
    if (!read.ok) return { told: { invalid: read.code }, scope: '' };
    const { scope } = inferScope(loaded.facts, askOf(action, { ...read.call, raw }));
    return { told: told(decide(loaded.facts, askOf({ ...action, scope }, { ...read.call, raw }), NOW)), scope };
  };

  const bodiesOf = (method: Method, path: string, random: () => number): readonly Sent[] => {
    if (method === 'GET') return [];
    if (path === (rules.graphqlPath ?? '') || rules.kind === 'graphql') return DOCUMENTS.map(json);
    const kinds = bodyKinds(rules, { method, path }) ?? [rules.isForm ? 'form' : 'json'];
    const objects = [
      ...some(sized(1, 2), OBJECTS, random),
      ...some(sized(3, 6), namedObjects(rules, method, path), random),
    ];
    const sent = kinds.flatMap((kind): readonly (Sent | undefined)[] =>
      kind === 'list' || kind === 'text' || kind === 'bytes' ? OTHERS[kind] : objects.map(WRITTEN[kind]),
    );
    return sent.filter((one): one is Sent => one !== undefined);
  };
  /** Calls of one operation: without a body and with several, and with some queries, preferably those that a rule about it reads. */
  const callsOf = (method: Method, path: string, random: () => number): [string, Sent][] => {
    const bodies = [json(''), ...bodiesOf(method, path, random)];
    const queries = [...some(sized(2, 3), namedQueries(rules, method, path), random), ...some(1, QUERIES, random)];
    return [
      ...bodies.map((body): [string, Sent] => [path, body]),
      ...queries.flatMap((query) => some(1, bodies, random).map((body): [string, Sent] => [`${path}?${query}`, body])),
    ];
  };

  test('a call gets the same verdict through both entry points', async () => {
    expect(operations.length).toBeGreaterThan(0);
    const random = makeRandom(42);
    const scopes = [...rules.scopes.keys()];
    const kinds = new Set<string>();
    // Few operations, so many combinations of each.
    const rounds = name === 'own' ? Array.from({ length: sized(4, 8) }, () => operations).flat() : operations;
    for (const { scope: own, method, path } of rounds)
      for (const [endpoint, body] of callsOf(method, path, random)) {
        const others = Array.from({ length: 2 }, () => scopes[Math.floor(random() * scopes.length)] ?? own);
        const granted = [...new Set(random() < 0.7 ? [own, ...others] : others)];
        const constraints = (random() < 0.5 ? CONSTRAINTS[Math.floor(random() * CONSTRAINTS.length)] : undefined) ?? {};
        const loaded = platformOf(granted, constraints, random() < 0.3);
        const { told: raw, scope } = await byProxy(loaded, method, endpoint, body);
        const byScope = new Map<string, Told>();
        for (const one of new Set(scope === '' && !('invalid' in raw) ? granted : [...granted, scope]))
          byScope.set(one, await byActions(loaded, method, endpoint, one, body));
        const where = `${method} ${endpoint} ${body.type} ${body.text} with ${granted.join(', ')} ${JSON.stringify(constraints)}`;
        // With the inferred scope, granted or not, both give the same verdict.
        expect(byScope.get(scope) ?? raw, where).toEqual(raw);
        const found = [...byScope.values()].map((one) => ('kind' in one ? one.kind : undefined));
        const best = (['allow', 'hold', 'deny'] as const).find((kind) => found.includes(kind));
        // No other scope would have had a better verdict.
        expect('kind' in raw ? raw.kind : undefined, where).toBe(best);
        kinds.add('kind' in raw ? raw.kind : 'invalid');
      }
    expect([...kinds]).toEqual(expect.arrayContaining(['allow', 'deny', 'invalid']));
  });
});

const told = ({ kind, reason, matched }: Verdict): Judged =>
  ({ kind, reason, matched: matched.map((rule) => JSON.stringify(rule)) }) as Judged;

/** Values at the place that a rule reads: some that match, and some that do not. */
const VALUES: readonly JsonValue[] = [true, false, null, '', 'false', 0, 1, 'low', 'C1', 'secret/a'];

/** Bodies with the members from which a rule about this operation reads scopes, refs or recipients. */
function namedObjects(rules: PlatformRules, method: Method, path: string): JsonObject[] {
  const call = { method, path, query: '', headers: {}, body: undefined };
  const isAbout = ({ operation }: { operation: Operation }) => namesCall(operation, rules, call);
  const content = rules.content.filter((rule) => rule.isOfBody && isAbout(rule));
  const objects = content.flatMap(({ pointer = [], unless, paths }) =>
    [...VALUES, ...unless, ...(paths ?? []).map(({ source }) => source.replaceAll('*', 'x1'))].map((value) =>
      objectWith(pointer, value),
    ),
  );
  const pointers = rules.recipients.filter(isAbout).flatMap(({ pointers: all }) => all.map(({ pointer }) => pointer));
  const refs = rules.refs.filter(isAbout).flatMap(({ writes }) => (typeof writes === 'string' ? [] : writes));
  for (const { unless, ...position } of refs)
    if (position.in === 'body')
      for (const is of unless ? [true, false, 'true', null] : [undefined])
        objects.push({
          ...objectWith(namesOf(position.at), 'x'),
          ...(unless && is !== undefined && objectWith(namesOf(unless.at), is)),
        });
  return [
    ...objects,
    ...pointers.flatMap((one) => [null, '', 'C1', 13].map((value) => objectWith(namesOf(one), value))),
  ];
}

/** Queries with the names that a rule about this operation reads. */
function namedQueries(rules: PlatformRules, method: Method, path: string): string[] {
  const call = { method, path, query: '', headers: {}, body: undefined };
  const isAbout = ({ operation }: { operation: Operation }) => namesCall(operation, rules, call);
  const content = rules.content.filter(isAbout).flatMap(({ pointer }) => pointer?.[0] ?? []);
  const refs = rules.refs.filter(isAbout).flatMap(({ writes }) => (typeof writes === 'string' ? [] : writes));
  const named = refs.flatMap((one) => (one.in === 'query' ? `${one.at}=x` : []));
  return [...named, ...content.flatMap((name) => [name, `${name}=1`])].filter((query) => !query.startsWith('*'));
}

/** A random selection of at most `most`. */
const some = <One>(most: number, all: readonly One[], random: () => number): One[] =>
  all
    .map((one) => ({ one, at: random() }))
    .sort((a, b) => a.at - b.at)
    .slice(0, most)
    .map(({ one }) => one);

const namesOf = (pointer: string): string[] => pointer.slice(1).split('/');

/** `*` stands for the only item of a list. */
const objectWith = (names: readonly string[], value: JsonValue): JsonObject =>
  names.reduceRight<JsonValue>((inner, name) => (name === '*' ? [inner] : { [name]: inner }), value) as JsonObject;

/** A path that matches a pattern. */
const pathOf = (segments: readonly string[]): string =>
  `/${segments.map((one) => (one === '**' ? 'a/b' : one.replaceAll('*', 'x1'))).join('/')}`;
