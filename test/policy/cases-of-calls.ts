/** Cases of verdicts that depend on grants, scopes, endpoints and constraints. */
import type { Ask } from '../../broker/policy/facts.ts';
import { ask, type Case, call, facts, grant, NOW, policyOf, READ, send, WRITE } from './world.ts';

export const onConnection = (connectionId: string, changes: Partial<Ask> = {}) => ask({ connectionId, ...changes });

export const limited = (recipients: string[]) => facts({ grants: [grant({ constraints: { recipients } })] });
const repos = (list: string[]) => facts({ grants: [grant({ constraints: { repos: list } })] });

export const CALL_CASES: Case[] = [
  ['a granted read that the policy allows', facts(), READ, ['allow', 'approved']],
  ['a granted write that the policy allows', facts(), WRITE, ['allow', 'approved']],
  ['a granted scope without a concrete call', facts(), ask(), ['allow', 'approved']],
  ['no grant', facts({ grants: [] }), READ, ['deny', 'no_permission_record']],
  ['an unknown platform', facts({ platform: undefined as never }), READ, ['deny', 'no_permission_record']],
  ['facts of another platform', facts(), ask({ platformId: 'mail' }), ['deny', 'no_permission_record']],
  [
    'a grant on another platform',
    facts({ grants: [grant({ platformId: 'mail' })] }),
    READ,
    ['deny', 'no_permission_record'],
  ],
  [
    'PA-20 a platform named like an object member',
    facts(),
    ask({ platformId: '__proto__' }),
    ['deny', 'no_permission_record'],
  ],
  [
    'a suspended platform',
    facts({ platform: { ...facts().platform!, suspended: true } }),
    READ,
    ['deny', 'platform_suspended'],
  ],
  [
    'a grant that needs approval',
    facts({ grants: [grant({ requireApproval: true })] }),
    READ,
    ['hold', 'approval_required_by_grant'],
  ],
  [
    'a grant on the requested connection',
    facts({ grants: [grant({ connectionId: 'conn-2' })] }),
    onConnection('conn-2'),
    ['allow', 'approved'],
  ],
  [
    'no grant on the requested connection',
    facts(),
    onConnection('conn-2'),
    ['deny', 'no_permission_record', /connection/],
  ],
  ['the default grant on the default connection', facts(), onConnection('conn-main'), ['allow', 'approved']],
  ['a grant that expired just now', facts({ grants: [grant({ expiresAt: NOW })] }), READ, ['deny', 'grant_expired']],
  [
    'a grant that expires in one millisecond',
    facts({ grants: [grant({ expiresAt: NOW + 1 })] }),
    READ,
    ['allow', 'approved'],
  ],
  ['PA-19 a scope that the grant lacks', facts(), ask({ scope: 'crm:admin' }), ['deny', 'scope_not_granted']],
  ['PA-19 a scope with a space after it', facts(), ask({ scope: 'crm:contacts.read ' }), ['deny', 'scope_not_granted']],
  ['PA-19 a scope in capitals', facts(), ask({ scope: 'CRM:CONTACTS.READ' }), ['deny', 'scope_not_granted']],
  ['PA-19 a scope pattern', facts(), ask({ scope: 'crm:*' }), ['deny', 'scope_not_granted']],
  ['PA-19 two scopes', facts(), ask({ scope: 'crm:contacts.read,crm:contacts.write' }), ['deny', 'scope_not_granted']],
  [
    'PA-19 a scope with a look-alike letter',
    facts(),
    ask({ scope: 'crm:contacts.r\u0435ad' }),
    ['deny', 'scope_not_granted'],
  ],
  [
    'PA-18 a delete under the read scope',
    facts(),
    ask({ call: call({ method: 'DELETE', path: '/contacts/1' }) }),
    ['deny', 'endpoint_scope_mismatch', /it needs crm:admin/],
  ],
  [
    'an endpoint in no rule',
    facts(),
    ask({ call: call({ path: '/invoices' }) }),
    ['deny', 'endpoint_scope_mismatch', /no scope/],
  ],
  [
    'an endpoint that only another method covers',
    facts(),
    ask({ call: call({ method: 'GET', path: '/messages' }) }),
    [
      'deny',
      'endpoint_scope_mismatch',
      /^no scope of platform crm covers GET \/messages; POST \/messages is in crm:messages\.send$/,
    ],
  ],
  [
    'an endpoint that several other methods cover',
    facts(),
    ask({ call: call({ method: 'PUT', path: '/contacts/1' }) }),
    [
      'deny',
      'endpoint_scope_mismatch',
      /; GET \/contacts\/1 is in crm:contacts\.read, PATCH \/contacts\/1 is in crm:contacts\.write, DELETE \/contacts\/1 is in crm:admin$/,
    ],
  ],
  [
    'an endpoint of a more specific scope',
    facts(),
    ask({ call: call({ path: '/contacts/export' }) }),
    ['deny', 'endpoint_scope_mismatch'],
  ],
  [
    'PA-11 an endpoint in other case',
    facts(),
    ask({ call: call({ path: '/Contacts' }) }),
    ['deny', 'endpoint_scope_mismatch'],
  ],
  [
    'PA-12 an endpoint with a slash after it',
    facts(),
    ask({ call: call({ path: '/contacts/' }) }),
    ['deny', 'endpoint_scope_mismatch'],
  ],
  [
    'AP-22 a recipient outside of the constraint, under a policy that requires approval',
    { ...limited(['@acme.example']), policy: policyOf({ effect: 'require_approval' }) },
    send({ to: 'x@evil.example' }),
    ['deny', 'recipient_not_allowed'],
  ],
  [
    'a recipient inside of the constraint',
    limited(['@acme.example']),
    send({ to: 'ann@acme.example' }),
    ['allow', 'approved'],
  ],
  [
    'CH-05 an empty list of recipients',
    limited([]),
    send({ to: 'ann@acme.example' }),
    ['deny', 'recipient_not_allowed'],
  ],
  ['a read under a recipient constraint', limited([]), READ, ['allow', 'approved']],
  [
    'a repository constraint and an endpoint without a repository',
    repos(['acme/*']),
    READ,
    ['deny', 'repo_not_allowed'],
  ],
];
