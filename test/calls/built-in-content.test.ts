/** Members of a body, and names in a query, with which an operation of a built-in platform needs another scope. */
import { describe, expect, test } from 'vitest';
import { encodeForm } from '../../broker/egress/credential-search/form.ts';
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { manifestOf } from '../platforms/classified.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const SECRET = '/api/v1/namespaces/shop/secrets/db';

/** Platform, operation, body, the scope of its endpoint, and the scope that it needs; null: no scope covers it. */
const CASES: [BuiltinName, string, JsonObject, string, string | null][] = [
  ['stripe', 'POST /v1/customers', { balance: -5000 }, 'customers.write', 'customers.balance.write'],
  ['stripe', 'POST /v1/customers/cus_1', { balance: 0, name: 'Ann' }, 'customers.write', 'customers.balance.write'],
  ['stripe', 'POST /v1/customers/cus_1', { source: 'tok_1' }, 'customers.write', 'sources.write'],
  // As in earlier API versions.
  ['stripe', 'POST /v1/customers/cus_1', { account_balance: -5000 }, 'customers.write', 'customers.balance.write'],
  ['stripe', 'POST /v1/customers/cus_1', { card: 'tok_1' }, 'customers.write', 'sources.write'],
  ['stripe', 'POST /v1/customers', { bank_account: { account_number: '1' } }, 'customers.write', 'sources.write'],
  ['stripe', 'POST /v1/customers', { plan: 'gold' }, 'customers.write', null],
  ['stripe', 'POST /v1/customers/cus_1', { name: 'Ann' }, 'customers.write', 'customers.write'],
  ['stripe', 'POST /v1/accounts', { external_account: 'btok_1' }, 'accounts.write', null],
  ['stripe', 'POST /v1/accounts/acct_1', { external_account: { object: 'bank_account' } }, 'accounts.write', null],
  ['stripe', 'POST /v1/accounts', { type: 'custom', bank_account: 'btok_1' }, 'accounts.write', null],
  ['stripe', 'POST /v1/subscriptions', { customer: 'cus_1', source: 'tok_1' }, 'subscriptions.write', null],
  ['stripe', 'POST /v1/subscriptions/sub_1', { card: 'tok_1' }, 'subscriptions.write', null],
  ['stripe', 'POST /v1/subscriptions', { customer: 'cus_1' }, 'subscriptions.write', 'subscriptions.write'],
  ['stripe', 'POST /v1/accounts/acct_1', { email: 'a@acme.example' }, 'accounts.write', 'accounts.write'],
  ['stripe', 'POST /v1/subscriptions/sub_1', { cancel_at: 1 }, 'subscriptions.write', 'subscriptions.cancel'],
  ['stripe', 'POST /v1/subscriptions/sub_1', { cancel_at: '' }, 'subscriptions.write', 'subscriptions.write'],
  [
    'stripe',
    'POST /v1/subscriptions/sub_1',
    { cancel_at_period_end: true },
    'subscriptions.write',
    'subscriptions.cancel',
  ],
  [
    'stripe',
    'POST /v1/subscriptions/sub_1',
    { cancel_at_period_end: false },
    'subscriptions.write',
    'subscriptions.write',
  ],
  [
    'stripe',
    'POST /v1/subscription_schedules/s_1',
    { end_behavior: 'cancel' },
    'subscriptions.write',
    'subscriptions.cancel',
  ],
  ...['end_behavior', 'renewal_behavior'].flatMap((name): typeof CASES => [
    ['stripe', 'POST /v1/subscription_schedules', { [name]: 'none' }, 'subscriptions.write', 'subscriptions.cancel'],
    ['stripe', 'POST /v1/subscription_schedules', { [name]: 'release' }, 'subscriptions.write', 'subscriptions.write'],
  ]),
  ['stripe', 'POST /v1/payment_intents', { amount: 1, confirm: true }, 'payments.create', 'payments.charge'],
  ['stripe', 'POST /v1/payment_intents', { amount: 1, confirm: false }, 'payments.create', 'payments.create'],
  ['stripe', 'POST /v1/setup_intents', { confirm: true }, 'payments.create', 'payments.charge'],
  ['stripe', 'POST /v1/invoices', { auto_advance: true }, 'invoices.write', 'invoices.finalize'],
  ['stripe', 'POST /v1/invoices/in_1', { forgiven: true }, 'invoices.write', 'invoices.finalize'],
  ['stripe', 'POST /v1/invoices/in_1', { closed: false }, 'invoices.write', 'invoices.finalize'],
  ['stripe', 'POST /v1/credit_notes', { credit_amount: 1 }, 'creditnotes.write', 'customers.balance.write'],
  ['stripe', 'POST /v1/credit_notes', { refund_amount: 1, credit_amount: 0 }, 'creditnotes.write', 'refunds.write'],
  ['stripe', 'POST /v1/credit_notes', { out_of_band_amount: 1 }, 'creditnotes.write', 'creditnotes.write'],
  ['stripe', 'POST /v1/credit_notes', { refund_amount: 1 }, 'creditnotes.write', 'refunds.write'],
  ['notion', 'PATCH /blocks/b1', { in_trash: true }, 'blocks.write', 'blocks.delete'],
  ['notion', 'PATCH /blocks/b1', { archived: true }, 'blocks.write', 'blocks.delete'],
  ['notion', 'PATCH /blocks/b1', { archived: false }, 'blocks.write', 'blocks.write'],
  ['notion', 'PATCH /pages/p1', { in_trash: true, properties: {} }, 'pages.write', 'blocks.delete'],
  ['notion', 'PATCH /pages/p1', { erase_content: true }, 'pages.write', 'blocks.delete'],
  ['notion', 'PATCH /pages/p1', { in_trash: false }, 'pages.write', 'pages.write'],
  [
    'notion',
    'PATCH /pages/p1/markdown',
    { type: 'replace_content', replace_content: { new_str: '', allow_deleting_content: true } },
    'pages.write',
    'blocks.delete',
  ],
  ['notion', 'PATCH /databases/d1', { in_trash: true }, 'databases.write', 'blocks.delete'],
  ['notion', 'PATCH /data_sources/d1', { archived: true }, 'databases.write', 'blocks.delete'],
  ['linear', 'POST /', { query: 'mutation { issueArchive(id: "a") { success } }' }, 'issues.write', 'issues.write'],
  [
    'linear',
    'POST /',
    { query: 'mutation { issueArchive(id: "a", trash: true) { success } }' },
    'issues.write',
    'issues.delete',
  ],
  [
    'linear',
    'POST /',
    {
      query: 'mutation M($i: IssueUpdateInput!) { issueUpdate(id: "a", input: $i) { success } }',
      variables: { i: { trashed: true } },
    },
    'issues.write',
    'issues.delete',
  ],
  [
    'linear',
    'POST /',
    { query: 'mutation { issueUpdate(id: "a", input: { trashed: null }) { success } }' },
    'issues.write',
    'issues.write',
  ],
  [
    'linear',
    'POST /',
    { query: 'mutation { documentUpdate(id: "a", input: { trashed: true }) { success } }' },
    'documents.write',
    'documents.delete',
  ],
  [
    'jira',
    'PUT /rest/api/3/issue/P-1',
    { update: { comment: [{ add: { body: 'x' } }, { remove: { id: '1' } }] } },
    'issues.write',
    'comments.delete',
  ],
  [
    'jira',
    'PUT /rest/api/3/issue/P-1',
    { update: { comment: [{ add: { body: 'x' } }], labels: [{ remove: 'a' }] } },
    'issues.write',
    'issues.write',
  ],
  [
    'jira',
    'PUT /rest/api/3/filter/10000',
    { name: 'x', sharePermissions: [{ type: 'global' }] },
    'filters.write',
    'filters.share',
  ],
  [
    'jira',
    'POST /rest/api/3/filter',
    { name: 'x', editPermissions: [{ type: 'loggedin' }] },
    'filters.write',
    'filters.share',
  ],
  ['jira', 'POST /rest/api/3/filter', { name: 'x', jql: 'a = b' }, 'filters.write', 'filters.write'],
  ['google-calendar', 'PATCH /calendars/primary/events/e1', { status: 'cancelled' }, 'events.write', 'events.delete'],
  ['google-calendar', 'PUT /calendars/primary/events/e1', { status: 'confirmed' }, 'events.write', 'events.write'],
  ['google-calendar', 'PUT /calendars/primary/events/e1', { status: ['x'] }, 'events.write', 'events.delete'],
  ['kubernetes', `DELETE ${SECRET}`, { propagationPolicy: 'Background' }, 'secrets.delete', 'secrets.delete'],
  ['kubernetes', `DELETE ${SECRET}`, { propagationPolicy: 'Foreground' }, 'secrets.delete', 'secrets.deletecollection'],
  ['kubernetes', `DELETE ${SECRET}`, { orphanDependents: true }, 'secrets.delete', 'secrets.deletecollection'],
  ['kubernetes', `DELETE ${SECRET}`, { dryRun: ['All'] }, 'secrets.delete', 'secrets.deletecollection'],
  [
    'kubernetes',
    `DELETE ${SECRET}?dryRun=All&propagationPolicy=Foreground`,
    {},
    'secrets.delete',
    'secrets.deletecollection',
  ],
];

function formOf(data: JsonObject): string {
  const encoded = encodeForm(data);
  if (!encoded.ok) throw new Error(encoded.error);
  return encoded.body;
}

describe('a call of a built-in platform needs the scope of its content', () => {
  const world = givenWorld();
  const organisation = shared(async () => {
    const made = await world.organisation();
    const names = [...new Set(CASES.map(([name]) => name))];
    const text = JSON.stringify({
      platforms: Object.fromEntries(
        names.map((name) => [name, { use: name, base_url: `${world.upstream.url}/${name}`, auth: { type: 'bearer' } }]),
      ),
      connections: Object.fromEntries(
        names.map((name) => [`${name}-main`, { platform: name, secret: { env: 'SECRET' } }]),
      ),
    });
    const applied = await made.ask('POST', '/owner/governance/apply', { text, values: { 'env:SECRET': 'secret-1' } });
    expect(applied.status, applied.text).toBe(200);
    return made;
  });
  /** Has every scope of each platform. */
  const agent = shared(async () => {
    const names = [...new Set(CASES.map(([name]) => name))];
    const grants = Object.fromEntries(names.map((name) => [name, { scopeList: Object.keys(manifestOf(name).scopes) }]));
    return await organisation.agent({ rules: ALLOW_ALL, grants });
  });

  test.each(CASES)('%s: %s %j, in %s by its endpoint: %s', async (name, operation, data, endpointScope, needed) => {
    const [method = '', endpoint = ''] = operation.split(' ');
    const act = (scope: string) => agent.act({ platform: name, method, endpoint, scope: `${name}:${scope}`, data });
    if (needed !== endpointScope) {
      const refused = await withoutCalls(world, () => act(endpointScope));
      expect([refused.status, refused.body.reason], refused.text).toEqual([403, 'endpoint_scope_mismatch']);
      expect(refused.body.detail).toContain(needed === null ? 'is in no scope of this platform' : needed);
    }
    if (needed !== null) expect((await act(needed)).status).toBe(200);
    const isForm = manifestOf(name).body === 'form';
    const unmodified = await rawClient(() => agent)(method, `/proxy/${name}-main${endpoint}`, {
      body: isForm ? formOf(data) : JSON.stringify(data),
      ...(isForm && { headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
    });
    expect(unmodified.status, unmodified.text).toBe(needed === null ? 403 : 200);
    const { row } = await evidenceOf(world, agent, unmodified.headers.get('x-svc-audit-id')!);
    if (needed === null) expect(row.reason).toBe('endpoint_scope_mismatch');
    else expect(row.scope).toBe(`${name}:${needed}`);
  });

  test.each(CASES.filter(([, , , endpointScope, needed]) => needed !== null && needed !== endpointScope))(
    '%s: %s %j is refused with the scope of its content alone, without %s',
    async (name, operation, data, endpointScope, needed) => {
      const [method = '', endpoint = ''] = operation.split(' ');
      const grants = { [name]: { scopeList: [`${name}:${needed}`] } };
      const limited = await organisation.agent({ rules: ALLOW_ALL, grants });
      const refused = await withoutCalls(world, () =>
        limited.act({ platform: name, method, endpoint, scope: `${name}:${needed}`, data }),
      );
      expect([refused.status, refused.body.reason], refused.text).toEqual([403, 'endpoint_scope_mismatch']);
      expect(refused.body.detail).toContain(`the call needs ${name}:${endpointScope} in addition to`);
      const isForm = manifestOf(name).body === 'form';
      const unmodified = await withoutCalls(world, () =>
        rawClient(() => limited)(method, `/proxy/${name}-main${endpoint}`, {
          body: isForm ? formOf(data) : JSON.stringify(data),
          ...(isForm && { headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
        }),
      );
      const { row } = await evidenceOf(world, limited, unmodified.headers.get('x-svc-audit-id')!);
      expect([unmodified.status, row.reason, row.scope]).toEqual([
        403,
        'scope_not_granted',
        `${name}:${endpointScope}`,
      ]);
    },
  );
});
