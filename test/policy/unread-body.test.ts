/** A body that was not read may contain anything: every check that needs it decides against the agent. */
import { describe, expect, test } from 'vitest';
import { judgeBody } from '../../broker/calls/judge-body.ts';
import { decide } from '../../broker/policy/decide.ts';
import { type CallAsk, type Constraints, type Facts, type RuleSource, UnreadBody } from '../../broker/policy/facts.ts';
import { classify } from '../../broker/policy/operation.ts';
import { rulesOf } from '../platforms/classified.ts';
import { ALLOW_ALL, call, facts, grant, guardrailsOf, NOW, policyOf } from './world.ts';

const UNREAD = new UnreadBody('a body of application/octet-stream is not read');

const judge = (rules: RuleSource[], changes: Partial<Facts> = {}) =>
  decide(
    facts({ policy: policyOf(...rules), ...changes }),
    {
      platformId: 'crm',
      scope: 'crm:contacts.write',
      call: call({ method: 'POST', path: '/contacts', body: UNREAD }),
    },
    NOW,
  );

describe('rules', () => {
  test.each([
    'request.body.amount > 1000',
    'has(request.body.amount) && request.body.amount > 1000',
    'size(request.body) > 3',
    '"amount" in request.body',
  ])('a rule that denies when %s denies, with the reason', (when) => {
    expect(judge([ALLOW_ALL, { effect: 'deny', when }])).toMatchObject({
      kind: 'deny',
      unread: true,
      reason: 'denied_by_policy',
      detail: expect.stringContaining('because its condition failed'),
    });
  });

  test('a rule that allows does not apply', () => {
    expect(judge([{ effect: 'allow', when: '!has(request.body.amount)' }])).toMatchObject({
      kind: 'deny',
      unread: true,
    });
  });

  test('a refusal that any other body would get, too, is not marked as `unread`', () => {
    const wants = { effect: 'deny', when: 'request.body.amount > 1' } as const;
    for (const rules of [
      [wants, { effect: 'deny' }],
      [{ effect: 'deny' }, wants],
      [{ effect: 'deny', when: 'request.headers.x == "1"' }],
    ])
      expect(judge(rules as RuleSource[])).not.toHaveProperty('unread');
  });

  test('a guardrail that holds applies', () => {
    const guardrails = guardrailsOf({ name: 'large', effect: 'require_approval', when: 'request.body.amount > 1' });
    expect(judge([ALLOW_ALL], { guardrails })).toMatchObject({ kind: 'hold', unread: true });
  });

  test('a condition that does not read the body is evaluated as usual', () => {
    expect(judge([{ effect: 'allow', when: 'request.endpoint == "/contacts"' }])).toMatchObject({ kind: 'allow' });
  });
});

describe('constraints of a grant', () => {
  const limited = (constraints: Constraints, asked: Partial<CallAsk>, scope: string, platformId = 'codehost') => {
    const rules = rulesOf(platformId === 'codehost' ? 'github' : 'gmail');
    return decide(
      facts({
        platform: { platformId, name: platformId, version: 1, suspended: false, defaultConnectionId: 'c', rules },
        grants: [grant({ platformId, scopes: [scope], constraints })],
      }),
      { platformId, scope, call: call({ method: 'POST', body: UNREAD, ...asked }) },
      NOW,
    );
  };

  test('recipients cannot be checked', () => {
    const mail = { path: '/gmail/v1/users/me/messages/send' };
    const sent = limited({ recipients: ['ann@acme.example'] }, mail, 'gmail:messages.send', 'gmail');
    expect(sent).toMatchObject({ kind: 'deny', reason: 'recipient_not_allowed', unread: true });
  });

  test.each<[string, Partial<CallAsk>, string]>([
    ['the repositories that an issue is linked to', { path: '/repos/acme/app/issues' }, 'codehost:issues.write'],
    ['the name of a new repository', { path: '/orgs/acme/repos' }, 'codehost:repo.create'],
  ])('repositories: %s are unknown', (_what, asked, scope) => {
    const constraints = { repos: ['acme/*'], allow_repo_creation: true };
    expect(limited(constraints, asked, scope)).toMatchObject({ kind: 'deny', unread: true });
    expect(limited(constraints, { ...asked, body: { name: 'app' } }, scope)).not.toMatchObject({
      reason: 'repo_not_allowed',
    });
  });

  describe('repositories: a body that is not an object', () => {
    const ASSET = { path: '/repos/acme/app/releases/1/assets', query: 'name=a.bin' };
    const CONTEXTS = { path: '/repos/acme/app/branches/main/protection/required_status_checks/contexts' };
    const sent = (asked: Partial<CallAsk>, type: string, bytes: string | Buffer, coding = 'identity') => {
      const headers = { 'content-type': type, 'content-encoding': coding };
      const read = judgeBody(headers, Buffer.from(bytes));
      if (!read.ok) throw new Error(read.detail);
      const scope = asked.path === CONTEXTS.path ? 'codehost:protection.write' : 'codehost:releases.write';
      return limited({ repos: ['acme/app'] }, { ...asked, body: read.judged }, scope);
    };
    const LIST = 'application/json';

    test.each([
      [ASSET, 'application/octet-stream', '\u0001'],
      [ASSET, 'application/zip', 'PK'],
      [ASSET, 'text/plain', '{"head":"evil:main"}'],
      [ASSET, LIST, '{"any":"thing"}'],
      [CONTEXTS, LIST, '["ci/test","ci/lint"]'],
      [CONTEXTS, LIST, '[{"name":"ci/test"}]'],
    ])('%j is allowed as %s: %s', (asked, type, body) => {
      expect(sent(asked, type, body)).toMatchObject({ kind: 'allow' });
    });

    test.each<[Partial<CallAsk>, string, string, string?]>([
      // Content that a server may read as JSON or as a form, whatever its type.
      [ASSET, 'application/octet-stream', 'x', 'gzip'],
      [ASSET, 'text/json', '{"repository_id":1}'],
      [ASSET, 'application/x-json', '{"repository_id":1}'],
      [ASSET, 'multipart/mixed; boundary=x', 'x'],
      [ASSET, '', 'x'],
      [ASSET, LIST, '[{"repository_id":1}]'],
      [ASSET, LIST, '{"repository_id":1}'],
      // An operation that accepts objects, and one without an entry in the manifest.
      [{ path: '/repos/acme/app/releases' }, 'application/octet-stream', '{"target_commitish":"x"}'],
      [{ path: '/repos/acme/app/releases' }, LIST, '[]'],
      // Another spelling, another repository, a path that reaches beyond the repository.
      [{ path: '/repos/acme/app/Releases/1/assets' }, 'application/octet-stream', 'x'],
      [{ path: '/repos/acme/other/releases/1/assets' }, 'application/octet-stream', 'x'],
      [{ path: '/repos/acme/app/releases/1/assets', query: 'repository_id=1' }, 'application/octet-stream', 'x'],
      [CONTEXTS, LIST, '[{"repository_id":1}]'],
      [CONTEXTS, LIST, '["ci",{"head":"evil:main"}]'],
      [CONTEXTS, LIST, '[[{"repository_id":1}]]'],
      [CONTEXTS, LIST, '[{"name":"ci/test"},[{"repository_id":1}]]'],
      [CONTEXTS, 'text/plain', 'ci'],
    ])('%j is refused as %s: %s %s', (asked, type, body, coding) => {
      expect(sent(asked, type, body, coding)).toMatchObject({ kind: 'deny' });
    });
  });

  test('refs: a ref in the body is unknown', () => {
    const asked = { path: '/repos/acme/app/git/refs' };
    const body = { ref: 'refs/heads/agent/x', sha: 'abc' };
    expect(limited({ refs: ['agent/*'] }, asked, 'codehost:contents.write')).toMatchObject({
      reason: 'repo_not_allowed',
      unread: true,
    });
    expect(limited({ refs: ['agent/*'] }, { ...asked, body }, 'codehost:contents.write')).toMatchObject({
      kind: 'allow',
    });
  });
});

test('an operation whose scope depends on its content falls under no scope', () => {
  const put = call({ method: 'PUT', path: '/repos/acme/app/contents/a.txt', body: UNREAD });
  const rules = rulesOf('github');
  const found = classify(rules, call({ method: 'POST', path: '/repos/acme/app/git/trees', body: UNREAD }));
  expect(found).toEqual({ kind: 'unclassified', why: expect.stringContaining(UNREAD.why), unread: true });
  expect(classify(rules, { ...put, body: { content: 'eA==' } })).toMatchObject({ kind: 'classified' });
});

test('a GraphQL document that was not read is malformed', () => {
  expect(classify(rulesOf('linear'), call({ method: 'POST', path: '/', body: UNREAD }))).toEqual({
    kind: 'malformed',
    error: expect.stringContaining(UNREAD.why),
  });
});

describe('S3, whose operations are determined by the query', () => {
  test.each([
    ['PUT', '/bucket/key', '', ['s3:objects.write']],
    ['PUT', '/bucket/key', 'x-id=PutObject', ['s3:objects.write']],
    ['PUT', '/bucket/key', 'acl', ['s3:permissions.write']],
    ['PUT', '/bucket/', 'policy', ['s3:permissions.write']],
    ['PUT', '/bucket/', '', ['s3:buckets.write']],
  ] as const)('%s %s?%s is in a scope, whatever the body is', (method, path, query, scopes) => {
    const found = classify(rulesOf('s3'), call({ method, path, query, body: UNREAD }));
    expect(found).toMatchObject({ kind: 'classified', scopes });
  });
});
