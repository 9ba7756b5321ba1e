/** The sentences of the built-in platforms for calls. */
import { describe, expect, test } from 'vitest';
import { exportPlatform } from '../../broker/config-plan/export-platform.ts';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import { BUILTIN_NAMES, type BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { compileManifest } from '../../broker/platforms/manifest.ts';
import { sentencesIn } from '../../broker/platforms/presets.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { plainSentence } from '../../broker/sentences/part.ts';
import { compileSentences, sentenceOfPath } from '../../broker/sentences/sentences.ts';
import { said } from '../sentences/describe-call.ts';
import { manifestOf } from './classified.ts';

const platformOf = (name: BuiltinName) => {
  const manifest = manifestOf(name);
  return { rules: compileManifest(name, manifest), sentences: compileSentences(sentencesIn(manifest)) };
};
/** Templates for calls that are not listed in a scope by themselves: frequent reads, and narrower forms of a wide operation. */
const BESIDE_SCOPES = [
  'PUT /repos/*/*/branches/*/protection',
  'DELETE /repos/*/*/branches/*/protection',
  'GET /git/*/*/info/refs',
];

/** Whether an operation is a narrower form of a read that a scope lists as `**`. */
const isInWider = (one: string, operations: ReadonlySet<string>): boolean =>
  [...operations].some(
    (wide) => wide.startsWith('GET ') && wide.endsWith('/**') && one.startsWith(wide.slice(0, -'**'.length)),
  );

describe.each(BUILTIN_NAMES)('%s', (name) => {
  const manifest = manifestOf(name);
  const { scopes } = manifest;
  const { sentences = {} } = sentencesIn(manifest);
  const operations = new Set(Object.values(scopes).flat());
  const platform = platformOf(name);

  test('every operation has a template, and every template an operation', () => {
    expect([...operations].filter((one) => !Object.hasOwn(sentences, one))).toEqual([]);
    const beside = (one: string) => operations.has(one) || BESIDE_SCOPES.includes(one) || isInWider(one, operations);
    expect(Object.keys(sentences).filter((one) => !beside(one))).toEqual([]);
  });

  test('the sentence of every read has one verb, no identifiers of programs, and no repeated words', () => {
    const texts = [...operations]
      .filter((one) => one.startsWith('GET '))
      .flatMap((operation) => {
        const pattern = operation.slice('GET '.length);
        const whole = pattern.replaceAll('**', 'thing/7');
        const paths = pattern.endsWith('/**') ? [whole, pattern.slice(0, -'/**'.length)] : [whole];
        return paths.map((path) => said(platform, `GET ${path.replaceAll('**', 'thing/7').replaceAll('*', 'x1')}`));
      });
    const verbs =
      'read|list|search|count|compare|download|find|get|see|suggest|preview|test|check|generate|ask|exchange';
    const isWellFormed = (text: string) =>
      new RegExp(`^(?:${verbs})(?: |$)`).test(text) && !/\(not given\)|other field|[[\]{}*]/.test(text);
    // Spelled as in programs, repeated, or with a gap in place of a word.
    const isAwkward = (text: string) =>
      /(?!GitHub)\b[a-z]+[A-Z]|[a-z]_[a-z]|\b([a-z]+) \1\b|\bof (?:of|in)\b| {2}| $/.test(
        text.replaceAll(/thing\/7|\S*x1[\w/]*/g, '…'),
      );
    expect(texts.filter((text) => !isWellFormed(text) || isAwkward(text))).toEqual([]);
  });

  test('each template can be filled from method and path alone', () => {
    const http = Object.keys(sentences).filter((one) => /^[A-Z]+ /.test(one));
    const bare = http.filter((operation) => {
      const [method = '', pattern = ''] = operation.split(' ');
      const path = pattern.replaceAll('**', 'x').replaceAll('*', 'x');
      return sentenceOfPath(platform, { method, path }).template === null;
    });
    expect(bare).toEqual([]);
  });

  test('the sentence of a call without a body mentions no fields', () => {
    for (const operation of Object.keys(sentences)) {
      const [method = '', pattern = ''] = operation.split(' ');
      if (!pattern.startsWith('/')) continue;
      const path = pattern.replaceAll('**', 'x').replaceAll('*', 'x');
      const text = said(platform, `${method} ${path}`);
      expect(text, operation).not.toMatch(/ {2}|^ | $|other field|[[\]{}*]/);
    }
  });
});

const raw = (text: string) => Buffer.from(text).toString('base64url');
const SENT = { raw: raw('To: Ann <ann@acme.example>\r\nCc: bob@acme.example\r\nSubject: Hello\r\n\r\nHi') };

test.each<[BuiltinName, string, JsonObject | undefined, string]>([
  [
    'github',
    'POST /repos/acme/shop/issues',
    { title: 'Broken login', body: 'x', labels: ['bug'] },
    'create an issue in acme/shop: “Broken login” and 2 other fields',
  ],
  ['github', 'POST /repos/acme/shop/issues/7/comments', { body: 'On it' }, 'comment on acme/shop#7: “On it”'],
  ['github', 'PATCH /repos/acme/shop/issues/7', { state: 'closed' }, 'change issue acme/shop#7, state: closed'],
  [
    'github',
    'PUT /repos/acme/shop/pulls/7/merge',
    { merge_method: 'squash', sha: 'abc' },
    'merge pull request acme/shop#7 by squash and 1 other field',
  ],
  [
    'github',
    'POST /repos/acme/shop/pulls',
    { head: 'agent/x', base: 'main', title: 'Fix' },
    'open a pull request in acme/shop from agent/x into main: “Fix”',
  ],
  [
    'github',
    'PUT /repos/acme/shop/contents/src/a.ts',
    { message: 'Fix', content: 'eA==', branch: 'main' },
    'write src/a.ts in acme/shop on branch main: “Fix” and 1 other field',
  ],
  [
    'github',
    'PUT /repos/acme/shop/contents/.github/workflows/ci.yml',
    { message: 'CI', content: 'eA==' },
    'write the workflow ci.yml in acme/shop: “CI” and 1 other field',
  ],
  ['github', 'DELETE /repos/acme/shop', undefined, 'delete the repository acme/shop'],
  ['github', 'POST /repos/acme/shop/transfer', { new_owner: 'evil' }, 'give the repository acme/shop away to evil'],
  [
    'github',
    'PATCH /repos/acme/shop',
    { visibility: 'public' },
    'change the settings of acme/shop, visibility: public',
  ],
  [
    'github',
    'PUT /repos/acme/shop/collaborators/mallory',
    { permission: 'admin' },
    'give mallory access to acme/shop as admin',
  ],
  [
    'github',
    'DELETE /repos/acme/shop/branches/main/protection',
    undefined,
    'end the protection of the branch main of acme/shop',
  ],
  ['github', 'DELETE /repos/acme/shop/git/refs/heads/main', undefined, 'delete the ref heads/main in acme/shop'],
  [
    'github',
    'POST /repos/acme/shop/actions/workflows/deploy.yml/dispatches',
    { ref: 'main', inputs: { a: 1 } },
    'run the workflow deploy.yml of acme/shop on main and 1 other field',
  ],
  [
    'github',
    'PUT /repos/acme/shop/actions/secrets/TOKEN',
    { encrypted_value: 'eA==', key_id: '1' },
    'set the secret TOKEN of the workflows of acme/shop with 2 fields',
  ],
  [
    'github',
    'POST /graphql',
    {
      query: 'mutation($i: CreateIssueInput!) { createIssue(input: $i) { clientMutationId } }',
      variables: { i: { repositoryId: 'R_1', title: 'T', body: 'B' } },
    },
    'create an issue in R_1: “T” and 1 other field',
  ],
  ['slack', 'POST /chat.postMessage', { channel: 'C1', text: 'Hello @channel' }, 'post to C1: “Hello @channel”'],
  [
    'slack',
    'POST /chat.postMessage',
    { channel: 'C1', blocks: [{ type: 'section' }] },
    'post to C1, as blocks (a list of 1)',
  ],
  // People see the blocks there.
  [
    'slack',
    'POST /chat.postMessage',
    { channel: 'C1', text: 'Lunch?', blocks: [{ type: 'section' }], username: 'Payroll', attachments: [{ text: 'x' }] },
    'post to C1 as Payroll, as blocks (a list of 1) in place of the text “Lunch?”, with attachments (a list of 1)',
  ],
  [
    'slack',
    'POST /chat.update',
    { channel: 'C1', ts: '1.2', text: 'Lunch?', blocks: [{ type: 'section' }] },
    'change a message in C1, as blocks (a list of 1) in place of the text “Lunch?” and 1 other field',
  ],
  [
    'slack',
    'POST /files.completeUploadExternal',
    { files: [{ id: 'F1' }], channel_id: 'C1' },
    'share uploaded files (1) with C1',
  ],
  [
    'slack',
    'POST /conversations.inviteShared',
    { channel: 'C1', emails: ['x@evil.example'] },
    'invite x@evil.example from elsewhere to C1',
  ],
  [
    'gmail',
    'POST /gmail/v1/users/me/messages/send',
    SENT,
    'send mail to “Ann <ann@acme.example>” and bob@acme.example: “Hello”',
  ],
  [
    'gmail',
    'POST /gmail/v1/users/me/settings/filters',
    { criteria: { from: 'bank' }, action: { forward: 'x@evil.example' } },
    'create a filter for mail from bank, which forwards to x@evil.example',
  ],
  [
    'gmail',
    'PATCH /gmail/v1/users/me/settings/sendAs/ann@acme.example',
    { replyToAddress: 'x@evil.example', smtpMsa: { host: 'mail.evil.example' } },
    'change the sender address ann@acme.example, with answers to x@evil.example, sent by the server mail.evil.example',
  ],
  ['gmail', 'POST /gmail/v1/users/me/messages/batchDelete', { ids: ['1', '2', '3'] }, 'delete 3 messages permanently'],
  [
    'google-calendar',
    'POST /calendars/primary/events',
    {
      summary: 'Lunch',
      start: { dateTime: '2026-01-01T12:00:00Z' },
      end: {},
      attendees: [{ email: 'ann@acme.example' }],
    },
    'create an event in primary at 2026-01-01T12:00:00Z, with ann@acme.example: “Lunch” and 1 other field',
  ],
  [
    'google-calendar',
    'POST /calendars/c@acme.example/acl',
    { role: 'owner', scope: { type: 'user', value: 'x@evil.example' } },
    'share the calendar c@acme.example with x@evil.example as owner, scope: user (default is everybody)',
  ],
  [
    'google-calendar',
    'POST /calendars/c@acme.example/acl',
    { role: 'reader', scope: { type: 'default' } },
    'share the calendar c@acme.example as reader, scope: default (default is everybody)',
  ],
  ['notion', 'POST /pages', { parent: { page_id: 'p1' }, properties: {} }, 'create a page in p1 and 1 other field'],
  ['notion', 'PATCH /pages/p1', { in_trash: true }, 'change page p1, in the bin: true'],
  [
    'linear',
    'POST /',
    { query: 'mutation { issueUpdate(id: "ENG-1", input: { trashed: true }) { success } }' },
    'change issue ENG-1, in the trash: true',
  ],
  [
    'google-calendar',
    'PATCH /calendars/primary/events/e1',
    { status: 'cancelled' },
    'change event e1 in primary, status: cancelled',
  ],
  [
    'stripe',
    'POST /v1/customers/cus_1',
    { balance: -5000 },
    'change customer cus_1, balance in the smallest unit: -5000',
  ],
  ['linear', 'POST /', { query: 'mutation { issueDelete(id: "ENG-1") { success } }' }, 'delete issue ENG-1'],
  [
    'linear',
    'POST /',
    {
      query: 'mutation($i: IssueCreateInput!) { issueCreate(input: $i) { success } }',
      variables: { i: { teamId: 'T', title: 'Bug', priority: 1 } },
    },
    'create an issue in team T: “Bug” and 1 other field',
  ],
  [
    'jira',
    'POST /rest/api/3/issue',
    { fields: { project: { key: 'OPS' }, summary: 'Down', issuetype: { name: 'Bug' } } },
    'create an issue in OPS: “Down” and 1 other field',
  ],
  ['jira', 'DELETE /rest/api/3/project/OPS', undefined, 'delete project OPS'],
  [
    'stripe',
    'POST /v1/payment_intents',
    { amount: 2500, currency: 'eur', transfer_data: { destination: 'acct_evil' } },
    'prepare a payment of 25.00 EUR, with the money passed on to acct_evil',
  ],
  [
    'stripe',
    'POST /v1/payment_links',
    { subscription_data: { transfer_data: { destination: 'acct_evil' } } },
    'create a payment link, with the money passed on to acct_evil',
  ],
  // `npm owner add` sends the whole list of maintainers with the same request that removes versions.
  [
    'npm',
    'PUT /acme-app/-rev/3-abc',
    { _id: 'acme-app', _rev: '3-abc', maintainers: [{ name: 'ann' }, { name: 'mallory' }] },
    'change acme-app: which versions the registry has, or who may publish it, from now on ann and mallory and 2 other fields',
  ],
  ['stripe', 'POST /v1/refunds', { charge: 'ch_1' }, 'refund all of charge ch_1'],
  [
    'stripe',
    'POST /v1/refunds',
    { payment_intent: 'pi_1', amount: 4500 },
    'refund 4500 (no currency given) of payment pi_1',
  ],
  ['stripe', 'POST /v1/payouts', { amount: '4500', currency: 'eur' }, 'pay out 45.00 EUR'],
  ['stripe', 'POST /v1/charges', { amount: 500, currency: 'jpy', customer: 'cus_1' }, 'charge 500 JPY for cus_1'],
  ['stripe', 'POST /v1/charges', { amount: 500, currency: 'isk', source: 'tok_1' }, 'charge 5.00 ISK from tok_1'],
  [
    'stripe',
    'POST /v1/charges',
    { amount: 500, currency: 'ugx', source: 'tok_1' },
    'charge 500 (in a unit of UGX that is not known) from tok_1',
  ],
  [
    'stripe',
    'POST /v1/payment_intents',
    { amount: 500, currency: 'mga', confirm: true },
    'prepare a payment of 500 MGA, and charge immediately: true',
  ],
  ['github', 'GET /repos/acme/shop/issues?state=open', undefined, 'list the issues of acme/shop with 1 field'],
  ['github', 'GET /repos/acme/shop/issues/7', undefined, 'read issue acme/shop#7'],
  ['github', 'GET /repos/acme/shop/issues/7/events', undefined, 'read 7/events in the issues of acme/shop'],
  [
    'github',
    'GET /repos/acme/shop/commits/feature/x/check-runs',
    undefined,
    'list the check runs of commit feature/x of acme/shop',
  ],
  ['github', 'GET /user/repos', undefined, 'list the repositories of the connected account'],
  ['stripe', 'GET /v1/charges/ch_1', undefined, 'read charge ch_1'],
  ['stripe', 'GET /v1/customers/cus_1/payment_methods/pm_1', undefined, 'read payment method pm_1 of customer cus_1'],
  ['slack', 'GET /conversations.history?channel=C1&limit=9', undefined, 'read the messages in C1 and 1 other field'],
  ['slack', 'POST /conversations.history', { channel: 'C1' }, 'read the messages in C1'],
  ['kubernetes', 'GET /api/v1/namespaces/shop/pods/web/log', undefined, 'read the log of the pod web in shop'],
  ['linear', 'POST /', { query: 'query { issue(id: "ENG-1") { title } }' }, 'read the issue ENG-1'],
  [
    'github',
    'POST /graphql',
    { query: 'query { repository(owner: "acme", name: "shop") { id } }' },
    'read the repository acme/shop',
  ],
  ['gmail', 'GET /gmail/v1/users/me/messages/m1', undefined, 'read message m1 of the mailbox me'],
  ['npm', 'DELETE /@acme/app/-rev/3-abc', undefined, 'take @acme/app out of the registry, with all versions'],
  ['npm', 'PUT /-/package/@acme/app/dist-tags/latest', undefined, 'tag a version of @acme/app as latest'],
  ['npm', 'PUT /-/package/app/dist-tags/latest', undefined, 'tag a version of app as latest'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets/db', undefined, 'delete the secret db in shop'],
  [
    'kubernetes',
    'POST /apis/apps/v1/namespaces/shop/deployments',
    { metadata: { name: 'web' } },
    'create the deployment web in shop',
  ],
  [
    'kubernetes',
    'DELETE /apis/networking.k8s.io/v1/namespaces/shop/ingresses/web',
    undefined,
    'delete the ingress web in shop',
  ],
  [
    'kubernetes',
    'PATCH /apis/apps/v1/namespaces/shop/deployments/web',
    { spec: { paused: true } },
    'change the deployment web in shop with 1 field',
  ],
  [
    'kubernetes',
    'PATCH /apis/apps/v1/namespaces/shop/statefulsets/db/scale',
    { spec: { replicas: 3 } },
    'scale the statefulset db in shop to 3',
  ],
  [
    'kubernetes',
    'PATCH /api/v1/nodes/n1',
    { spec: { unschedulable: true } },
    'change the node n1, unschedulable: true',
  ],
  ['kubernetes', 'PATCH /api/v1/namespaces/shop/secrets/db', {}, 'change and read the secret db in shop'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets', undefined, 'delete and read all secrets in shop'],
  ['stripe', 'DELETE /v1/customers/cus_1', undefined, 'delete customer cus_1, with all subscriptions'],
  [
    'stripe',
    'POST /v1/webhook_endpoints',
    { url: 'https://evil.example/x', enabled_events: ['*'] },
    'have events sent elsewhere: https://evil.example/x and 1 other field',
  ],
])('%s %s %j: %s', (name, operation, body, expected) => {
  expect(said(platformOf(name), operation, body)).toBe(expected);
});

test('a custom sentence replaces the built-in one, and only the custom one is exported', () => {
  const entry = { use: 'github', sentences: { 'POST /repos/*/*/issues': 'file a bug in **{1}/{2}**' } };
  const manifest = parsePlatformEntry(entry).data!;
  expect(Object.keys(manifest.sentences ?? {})).toEqual(Object.keys(manifestOf('github').sentences ?? {}));
  expect(exportPlatform(manifest)).toEqual(entry);
});

test('git requests are described by their effect', () => {
  const text = (path: string) => plainSentence(sentenceOfPath(platformOf('github'), { method: 'POST', path }));
  expect(text('/git/acme/shop/git-receive-pack')).toBe('push to acme/shop, by git');
});
