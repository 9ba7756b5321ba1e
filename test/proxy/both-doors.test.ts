/** The raw door and POST /v1/actions give one answer about every operation of every built-in platform. */
import { describe, expect, test } from 'vitest';
import { judgeBody } from '../../broker/calls/judge-body.ts';
import { rawAction } from '../../broker/calls/raw-request.ts';
import { inferScope } from '../../broker/calls/raw-scope.ts';
import { askOf, readCall } from '../../broker/calls/read-call.ts';
import type { LoadedFacts } from '../../broker/facts/facts.ts';
import { BUILTIN_NAMES, type BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { bodyKinds } from '../../broker/policy/body-kinds.ts';
import { decide } from '../../broker/policy/decide.ts';
import type { Constraints, Facts, Method, RuleSource, Verdict } from '../../broker/policy/facts.ts';
import type { BodyKind } from '../../broker/policy/platform-rules.ts';
import { inTurn } from '../../broker/runtime/long-bodies.ts';
import type { Action } from '../../broker/wire/action.ts';
import { manifestOf, rulesOf } from '../platforms/classified.ts';
import { facts, grant, guardrailsOf, NOW, policyOf } from '../policy/world.ts';
import { makeRandom } from '../world/random.ts';

const RULES: RuleSource[] = [
  { effect: 'allow' },
  { effect: 'require_approval', methods: ['DELETE'] },
  { effect: 'deny', when: 'has(request.body.amount) && request.body.amount == 13' },
];

const GUARDRAILS: RuleSource[] = [
  { name: 'puts', effect: 'require_approval', methods: ['PUT'] },
  { name: 'refs', effect: 'deny', when: 'has(request.body.ref) && request.body.ref == "refs/heads/x"' },
];

/** What a grant allows of what is called; `*` of an operation stands for `x1`. */
const CONSTRAINTS: Constraints[] = [
  {},
  { repos: ['x1/x1'] },
  { repos: ['acme/*'], allow_repo_creation: true },
  { refs: ['agent/*', 'x'] },
  { repos: ['x1/*'], refs: ['x'], ref_changes: ['create'] },
  { recipients: ['C1', '@acme.example'] },
];

const BODIES = ['', '{}', '{"amount":13}', '{"amount":12,"channel":"C1","ref":"refs/heads/x","paths":["a"]}'];

const DOCUMENTS = [
  '{"query":"query { issues { nodes { id } } }"}',
  '{"query":"query { viewer { login } }"}',
  '{"query":"mutation { issueCreate(input: {}) { success } }"}',
  '{"query":"mutation { anything }"}',
  '{"query":"{"}',
];

/** One body as an agent writes it, and as a client of the platform does. */
type Sent = { text: string; type: string; asked?: { data: unknown; encoding?: 'base64' } };

const json = (text: string): Sent => ({ text, type: 'application/json' });
const OF_KINDS: Readonly<Record<BodyKind, readonly Sent[]>> = {
  json: BODIES.map(json),
  form: ['amount=13', 'amount=12&channel=C1'].map((text) => ({
    text,
    type: 'application/x-www-form-urlencoded',
    asked: { data: Object.fromEntries(new URLSearchParams(text)) },
  })),
  multipart: ['12', '13'].map((amount) => ({
    text: `--x\r\nContent-Disposition: form-data; name="amount"\r\n\r\n${amount}\r\n--x--\r\n`,
    type: 'multipart/form-data; boundary=x',
    asked: { data: { amount: Number(amount) } },
  })),
  list: ['[]', '[{"amount":13}]'].map(json),
  text: [{ text: 'amount', type: 'text/plain; charset=utf-8', asked: { data: 'amount' } }],
  bytes: [{ text: '\u0001', type: 'application/octet-stream', asked: { data: 'AQ==', encoding: 'base64' } }],
};

type Told = Pick<Verdict, 'kind' | 'reason'> | 'invalid';

describe.each(BUILTIN_NAMES)('%s', (name: BuiltinName) => {
  const manifest = manifestOf(name);
  const rules = rulesOf(name);
  const operations = [...rules.scopes].flatMap(([scope, all]) =>
    all.flatMap((one) => (one.kind === 'http' ? [{ scope, method: one.method, path: pathOf(one.path.segments) }] : [])),
  );
  if (rules.kind === 'graphql' || rules.graphqlPath !== undefined)
    for (const scope of rules.scopes.keys()) operations.push({ scope, method: 'POST', path: rules.graphqlPath ?? '/' });
  const platformOf = (scopes: readonly string[], constraints: Constraints, isGuarded: boolean): LoadedFacts => {
    const found: Facts = facts({
      platform: { platformId: 'crm', name, version: 1, suspended: false, defaultConnectionId: 'c', rules },
      grants: [grant({ scopes, constraints })],
      policy: policyOf(...RULES),
      ...(isGuarded && { guardrails: guardrailsOf(...GUARDRAILS) }),
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
    const read = await readCall(action, loaded, { isGit: false, parsing: inTurn });
    return read.ok ? told(decide(loaded.facts, askOf(action, read.call), NOW)) : 'invalid';
  };
  const byProxy = async (
    loaded: LoadedFacts,
    method: Method,
    endpoint: string,
    { text: body, type }: Sent,
  ): Promise<Told & { scope?: string }> => {
    const bodyHeaders = { 'content-type': type };
    const judged = judgeBody(bodyHeaders, Buffer.from(body));
    if (!judged.ok) return 'invalid';
    const bytes = Buffer.from(body);
    const raw = {
      method,
      bodyHeaders,
      body: body === '' ? ({ kind: 'none' } as const) : ({ kind: 'whole', bytes } as const),
      judged: judged.judged,
    };
    const asked = rawAction(raw, { platform: 'crm', endpoint, headers: {}, connectionId: 'c' });
    const { connection_id: _, ...action } = asked;
    const read = await readCall(action, loaded, { isGit: false, raw, parsing: inTurn });
    if (!read.ok) return 'invalid';
    const { scope } = inferScope(loaded.facts, askOf(action, { ...read.call, raw }));
    return { ...told(decide(loaded.facts, askOf({ ...action, scope }, { ...read.call, raw }), NOW)), scope };
  };

  const bodiesOf = (method: Method, path: string): readonly Sent[] => {
    if (method === 'GET') return [json('')];
    if (path === (rules.graphqlPath ?? '') || rules.kind === 'graphql') return DOCUMENTS.map(json);
    return (bodyKinds(rules, { method, path }) ?? ['json']).flatMap((kind) => OF_KINDS[kind]);
  };

  test('a call is allowed, held or refused alike', async () => {
    expect(operations.length).toBeGreaterThan(0);
    const random = makeRandom(42);
    const scopes = [...rules.scopes.keys()];
    const kinds = new Set<string>();
    for (const { scope: own, method, path } of operations)
      for (const body of bodiesOf(method, path)) {
        const others = Array.from({ length: 3 }, () => scopes[Math.floor(random() * scopes.length)] ?? own);
        const granted = [...new Set(random() < 0.7 ? [own, ...others] : others)];
        const constraints = (random() < 0.5 ? CONSTRAINTS[Math.floor(random() * CONSTRAINTS.length)] : undefined) ?? {};
        const loaded = platformOf(granted, constraints, random() < 0.3);
        const raw = await byProxy(loaded, method, path, body);
        const told = await Promise.all(granted.map((scope) => byActions(loaded, method, path, scope, body)));
        const where = `${method} ${path} ${body.text} with ${granted.join(', ')} ${JSON.stringify(constraints)}`;
        if (raw === 'invalid') {
          expect(
            told.every((one) => one === 'invalid'),
            where,
          ).toBe(true);
          continue;
        }
        kinds.add(raw.kind);
        // With the scope that was found both say the same, and no other scope would have got more.
        if (granted.includes(raw.scope ?? ''))
          expect(await byActions(loaded, method, path, raw.scope ?? '', body), where).toEqual({
            kind: raw.kind,
            reason: raw.reason,
          });
        const best =
          ['allow', 'hold', 'deny'].find((kind) => told.some((one) => one !== 'invalid' && one.kind === kind)) ??
          'deny';
        expect(raw.kind, where).toBe(best);
      }
    expect(kinds).toContain('deny');
    expect(kinds).toContain('allow');
  });
});

const told = ({ kind, reason }: Verdict): Exclude<Told, 'invalid'> => ({ kind, reason }) as Exclude<Told, 'invalid'>;

/** A path that a pattern matches. */
const pathOf = (segments: readonly string[]): string =>
  `/${segments.map((one) => (one === '**' ? 'a/b' : one.replaceAll('*', 'x1'))).join('/')}`;
