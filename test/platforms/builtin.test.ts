import { describe, expect, test } from 'vitest';
import { BUILTIN_PLATFORMS, parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import { BUILTIN_NAMES, type BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { Manifest } from '../../broker/platforms/manifest.ts';
import { classify } from '../../broker/policy/operation.ts';
import { entryOf, isPlaceholder, isReadOfSlack, manifestOf, rulesOf } from './classified.ts';

/** Vendors use POST for reads whose filter needs a body, and a git fetch is a POST. Add exceptions with care. */
const READS_BY_POST: Record<string, string[]> = {
  'codehost:contents.read': ['POST /git/*/*/git-upload-pack'],
  'codehost:packages.read': ['POST /orgs/*/attestations/bulk-list', 'POST /users/*/attestations/bulk-list'],
  'slack:channels.read': ['POST /agents.conversations.listViews'],
  'slack:bookmarks.read': ['POST /bookmarks.list', 'POST /workflows.featured.list'],
  'slack:canvases.read': ['POST /canvases.sections.lookup', 'POST /agents.conversations.getCanvas'],
  'slack:lists.read': [
    'POST /slackLists.items.list',
    'POST /slackLists.items.info',
    'POST /slackLists.download.start',
    'POST /slackLists.download.get',
  ],
  'slack:users.email.read': ['POST /users.discoverableContacts.lookup'],
  'slack:team.read': ['POST /auth.teams.list', 'POST /team.preferences.list', 'POST /blocks.validate'],
  'slack:admin.read': [
    'POST /admin.apps.activities.list',
    'POST /admin.apps.config.lookup',
    'POST /admin.auth.policy.getEntities',
    'POST /admin.conversations.getCustomRetention',
    'POST /admin.conversations.lookup',
    'POST /admin.functions.list',
    'POST /admin.functions.permissions.lookup',
    'POST /admin.users.session.getSettings',
    'POST /admin.users.session.list',
    'POST /admin.workflows.permissions.lookup',
    'POST /admin.workflows.search',
    'POST /apps.manifest.export',
    'POST /apps.manifest.validate',
    'POST /conversations.listConnectInvites',
    'POST /conversations.requestSharedInvite.list',
    'POST /team.billing.info',
  ],
  'google-calendar:freebusy.read': ['POST /freeBusy'],
  'notion:databases.read': ['POST /data_sources/*/query', 'POST /databases/*/query'],
  'notion:search.read': ['POST /search'],
  'jira:search.read': [
    'POST /rest/api/3/search/jql',
    'POST /rest/api/3/search/approximate-count',
    'POST /rest/api/3/jql/parse',
    'POST /rest/api/3/jql/match',
  ],
  'jira:issues.read': [
    'POST /rest/api/3/issue/bulkfetch',
    'POST /rest/api/3/issue/*/changelog/list',
    'POST /rest/api/3/changelog/bulkfetch',
  ],
  'jira:comments.read': ['POST /rest/api/3/comment/list'],
  'jira:worklogs.read': ['POST /rest/api/3/worklog/list'],
  'jira:users.read': ['POST /rest/api/3/permissions/check'],
  'stripe:invoices.read': ['POST /v1/invoices/create_preview'],
  'npm:audit.read': [
    'POST /-/npm/v1/security/advisories/bulk',
    'POST /-/npm/v1/security/audits',
    'POST /-/npm/v1/security/audits/quick',
  ],
  'kubernetes:access.read': [
    'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    'POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
    'POST /apis/authentication.k8s.io/v1/selfsubjectreviews',
  ],
  'openai:vectorstores.read': ['POST /vector_stores/*/search'],
  'anthropic:models.read': ['POST /v1/messages/count_tokens'],
  // With `?select` only.
  's3:objects.read': ['POST /*/**'],
};

const PREFIXES: Record<string, string> = { github: 'codehost' };

describe.each([...BUILTIN_NAMES])('%s', (name) => {
  const { scopes } = rulesOf(name);

  test('has an `error_body` with {detail}, so that its clients show why a call was refused', () => {
    const { kind, error_body } = manifestOf(name);
    if (kind !== 'mcp') expect(JSON.stringify(error_body)).toContain('{detail}');
  });

  test('satisfies the schema', () => {
    expect(parsePlatformEntry(entryOf(name)).error).toBeUndefined();
    const { base_url, ...rest } = BUILTIN_PLATFORMS[name];
    expect(
      Manifest.safeParse({ ...rest, base_url: isPlaceholder(name) ? 'https://acme.example' : base_url }).success,
    ).toBe(true);
  });

  test('has a link to its API reference, and scope ids of the form platform:area.action', () => {
    expect(manifestOf(name).docs).toMatch(/^https:\/\//);
    const prefix = PREFIXES[name] ?? name;
    for (const scope of scopes.keys()) expect(scope).toMatch(new RegExp(`^${prefix}:[a-z]+(\\.[a-z]+)+$`));
  });

  test('has at least a dozen scopes, each with at least one operation', () => {
    expect(scopes.size).toBeGreaterThanOrEqual(12);
    expect([...scopes].filter(([, operations]) => operations.length === 0)).toEqual([]);
  });

  test('no reading scope contains a writing operation, except for those listed here', () => {
    for (const [scope, operations] of scopes) {
      if (!scope.endsWith('.read')) continue;
      const writing = operations.filter((one) =>
        one.kind === 'http' ? one.method !== 'GET' : one.kind === 'graphql' && one.operation === 'mutation',
      );
      const sources = operations.map((one) => one.source);
      const listed = writing.map((one) => one.source).filter((one) => !isReadOfSlack(name, sources, one));
      expect(listed.sort(), scope).toEqual([...(READS_BY_POST[scope] ?? [])].sort());
    }
  });

  test('no writing scope contains an operation that only reads', () => {
    for (const [scope, operations] of scopes) {
      if (scope.endsWith('.read')) continue;
      const reading = operations.filter((one) =>
        one.kind === 'http' ? one.method === 'GET' : one.source.startsWith('query'),
      );
      const expected = scope === 'codehost:contents.write' ? ['GET /git/*/*/info/refs'] : [];
      expect(
        reading.map((one) => one.source),
        scope,
      ).toEqual(expected);
    }
  });

  test('no operation is listed twice in a scope, and each falls under its scope', () => {
    const rules = rulesOf(name);
    const manifest = manifestOf(name);
    for (const [scope, operations] of scopes) {
      const sources = operations.map((one) => one.source);
      expect(new Set(sources).size, scope).toBe(sources.length);
      for (const operation of operations) {
        // Scopes that cover an operation for some contents only have tests of their own.
        if (operation.kind !== 'http' || !manifest.scopes[scope]!.includes(operation.source)) continue;
        const path = operation.path.source.replaceAll('**', 'x/y').replaceAll('*', 'x1');
        const found = classify(rules, { method: operation.method, path, query: '', headers: {}, body: undefined });
        expect(found, operation.source).toMatchObject({ kind: 'classified', scopes: expect.arrayContaining([scope]) });
      }
    }
  });

  test('members that may differ under a standing approval belong to operations of its scopes, and are not recipients', () => {
    const { free = {}, recipients = {} } = manifestOf(name);
    for (const [source, members] of Object.entries(free)) {
      expect(
        [...scopes].some(([, operations]) => operations.some((one) => one.source === source)),
        source,
      ).toBe(true);
      const named = (recipients[source] ?? []).map((one) => (typeof one === 'string' ? one : one.pointer));
      const texts = members.map((one) => (typeof one === 'string' ? one : one.member));
      expect(texts.filter((one) => named.some((pointer) => pointer.startsWith(one)))).toEqual([]);
    }
  });

  test('no forbidden header is one that it needs', () => {
    const { forbidden_headers = [], headers = {}, auth } = manifestOf(name);
    const needed = [...Object.keys(headers), auth.type === 'header' ? auth.name : 'authorization'];
    for (const header of needed) expect(forbidden_headers).not.toContain(header.toLowerCase());
  });

  test('escaped slashes are accepted only for package names of npm, and as a slash only for GitHub', () => {
    const { allowEncodedSlash, decodeSlash } = rulesOf(name);
    expect([allowEncodedSlash, decodeSlash]).toEqual([name === 'npm', name === 'github']);
  });
});

describe('refused parameters that select another person or account', () => {
  const query = (...names: string[]) => names.map((name) => ({ name, in: 'query' }));
  const GOOGLE = query(
    'key',
    '$key',
    'quotaUser',
    '$quotaUser',
    'userProject',
    '$userProject',
    'callback',
    '$callback',
  );
  test.each<[BuiltinName, unknown[] | undefined]>([
    ['github', query('client_id', 'callback')],
    ['slack', ['token']],
    ['gmail', GOOGLE],
    ['google-calendar', GOOGLE],
    ['s3', query('x-amz-*', 'x-minio-*', 'AWSAccessKeyId')],
    // Their references document headers only, or nothing of the kind.
    ['stripe', undefined],
    ['kubernetes', undefined],
    ['openai', undefined],
  ])('of %s', (name, refused) => {
    expect(manifestOf(name).refused_parameters).toEqual(refused);
  });
});
