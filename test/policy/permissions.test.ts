import { describe, expect, test } from 'vitest';
import type { Facts } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { effectivePermissions, nextChange, toWirePermissions } from '../../broker/policy/permissions.ts';
import { ALLOW_ALL, agent, facts, grant, guardrailsOf, NOW, parent, policyOf } from './world.ts';

const of = (...changes: Partial<Facts>[]) =>
  effectivePermissions(
    changes.map((change) => facts(change)),
    NOW,
  );
const first = (changes: Partial<Facts>) => of(changes)[0];

describe('effective permissions', () => {
  test('of a plain grant', () => {
    expect(of({})).toEqual([
      {
        platformId: 'crm',
        platformName: 'CRM',
        scopes: ['crm:contacts.read', 'crm:contacts.write', 'crm:messages.send'],
        requireApproval: false,
        connections: [
          {
            connection_id: 'conn-main',
            label: null,
            status: 'not_connected',
            default: true,
            scopes: ['crm:contacts.read', 'crm:contacts.write', 'crm:messages.send'],
            requireApproval: false,
            expiresAt: null,
          },
        ],
        expiresAt: null,
        changesAt: null,
      },
    ]);
  });

  test('scopes that are denied are omitted, held and conditional ones are marked', () => {
    const policy = policyOf(
      ALLOW_ALL,
      { effect: 'deny', scopes: ['*.send'] },
      { effect: 'require_approval', methods: ['POST', 'PATCH'] },
      { effect: 'deny', scopes: ['*.read'], when: 'request.query.all == "yes"' },
    );
    expect(first({ policy })).toMatchObject({
      scopes: ['crm:contacts.read', 'crm:contacts.write'],
      approvalScopes: ['crm:contacts.write'],
      conditionalScopes: ['crm:contacts.read'],
    });
    expect(first({})).not.toHaveProperty('approvalScopes');
    expect(first({})).not.toHaveProperty('conditionalScopes');
  });

  test('scopes held by a policy or a guardrail are marked also when the grant holds every call', () => {
    const grants = [grant({ requireApproval: true })];
    const policy = policyOf(ALLOW_ALL, { effect: 'require_approval', scopes: ['*.write'] });
    const guardrails = guardrailsOf({ name: 'sending', effect: 'require_approval', scopes: ['*.send'] });
    const held = { requireApproval: true, approvalScopes: ['crm:contacts.write', 'crm:messages.send'] };
    expect(first({ grants, policy, guardrails })).toMatchObject({ ...held, connections: [held] });
    expect(first({ grants })).not.toHaveProperty('approvalScopes');
  });

  test('scopes without an operation in the manifest are marked', () => {
    const grants = [grant({ scopes: ['crm:contacts.read', 'crm:ghost', 'crm:elsewhere'] })];
    expect(first({ grants })).toMatchObject({ unenforcedScopes: ['crm:elsewhere', 'crm:ghost'] });
  });

  test('show that a grant requires approval, its constraints and its expiry', () => {
    const grants = [
      grant({ requireApproval: true, constraints: { recipients: ['@acme.example'] }, expiresAt: NOW + 90_500 }),
    ];
    const [permissions] = of({ grants });
    expect(permissions).toMatchObject({
      requireApproval: true,
      constraints: { recipients: ['@acme.example'] },
      expiresAt: NOW + 90_500,
    });
    expect(toWirePermissions(permissions!, NOW)).toMatchObject({ expiresInSeconds: 90 });
    expect(toWirePermissions(permissions!, NOW)).not.toHaveProperty('expiresAt');
    expect(toWirePermissions(first({})!, NOW)).not.toHaveProperty('expiresInSeconds');
  });

  test('the values behind the ETag do not change as time passes', () => {
    const given = facts({ grants: [grant({ expiresAt: NOW + 90_000 })] });
    const at = (now: number) => effectivePermissions([given], now);
    expect(at(NOW + 5000)).toEqual(at(NOW));
    expect(at(NOW + 90_000)).toEqual([]);
    expect(nextChange(at(NOW))).toBe(NOW + 90_000);
    expect(nextChange(of({}))).toBeNull();
  });

  test('the next change may be the expiry of the grant on another connection', () => {
    const given = facts({
      grants: [
        grant({ expiresAt: NOW + 90_000 }),
        grant({ id: 'b', connectionId: 'conn-2', expiresAt: NOW + 60_000 }),
        grant({ id: 'c', connectionId: 'conn-3', expiresAt: NOW - 1 }),
      ],
    });
    expect(nextChange(effectivePermissions([given], NOW))).toBe(NOW + 60_000);
    expect(nextChange(effectivePermissions([given], NOW + 60_000))).toBe(NOW + 90_000);
  });

  test('with several connections, the top level describes the default one', () => {
    const grants = [
      grant({
        id: 'b',
        connectionId: 'conn-2',
        connection: { label: 'second', status: 'reauth_needed' },
        scopes: ['crm:contacts.write', 'crm:ghost'],
        constraints: { recipients: ['@acme.example'] },
        expiresAt: NOW + 60_000,
      }),
      grant({ id: 'a', scopes: ['crm:contacts.read'], connection: { label: 'main', status: 'active' } }),
    ];
    const policy = policyOf(
      ALLOW_ALL,
      { effect: 'require_approval', scopes: ['*.write'] },
      { effect: 'deny', scopes: ['*.write'], when: 'request.query.all == "yes"' },
    );
    const permissions = first({ grants, policy });
    const marked = {
      approvalScopes: ['crm:contacts.write'],
      conditionalScopes: ['crm:contacts.write'],
      unenforcedScopes: ['crm:ghost'],
    };
    expect(permissions).toMatchObject({ scopes: ['crm:contacts.read'], expiresAt: null, ...marked });
    expect(permissions).not.toHaveProperty('constraints');
    expect(permissions?.connections).toEqual([
      {
        connection_id: 'conn-main',
        label: 'main',
        status: 'active',
        default: true,
        scopes: ['crm:contacts.read'],
        requireApproval: false,
        expiresAt: null,
      },
      {
        connection_id: 'conn-2',
        label: 'second',
        status: 'reauth_needed',
        default: false,
        scopes: ['crm:contacts.write', 'crm:ghost'],
        requireApproval: false,
        ...marked,
        constraints: { recipients: ['@acme.example'] },
        expiresAt: NOW + 60_000,
      },
    ]);
    expect(toWirePermissions(permissions!, NOW).connections[1]).toMatchObject({ expiresInSeconds: 60 });
    expect(toWirePermissions(permissions!, NOW).connections[1]).not.toHaveProperty('expiresAt');
    expect(first({ grants: grants.toReversed(), policy })).toEqual(permissions);
  });

  test('when a connection has to be named, none is the default, and nothing can be used without a name', () => {
    const two = grant({ id: 'b', connectionId: 'conn-2', requireApproval: true });
    const three = grant({ id: 'c', connectionId: 'conn-3', scopes: ['crm:contacts.read'] });
    const permissions = first({ grants: [three, two] });
    expect(permissions).toMatchObject({ scopes: [], requireApproval: false, expiresAt: null });
    expect(permissions?.connections.map((one) => [one.connection_id, one.default, one.scopes.length])).toEqual([
      ['conn-2', false, 3],
      ['conn-3', false, 1],
    ]);
    expect(first({ grants: [three] })?.connections).toMatchObject([{ connection_id: 'conn-3', default: true }]);
  });

  test('two grants on one connection are one item, with the grant that a call uses', () => {
    const grants = [
      grant({ id: 'default' }),
      grant({ id: 'named', connectionId: 'conn-main', scopes: ['crm:contacts.read'] }),
    ];
    expect(first({ grants })?.connections).toEqual([
      {
        connection_id: 'conn-main',
        label: null,
        status: 'not_connected',
        default: true,
        scopes: ['crm:contacts.read'],
        requireApproval: false,
        expiresAt: null,
      },
    ]);
  });

  test('platforms are sorted, and omitted when no scope can be used', () => {
    const mail = {
      platformId: 'amail',
      name: 'Mail',
      version: 1,
      suspended: false,
      defaultConnectionId: null,
      rules: compilePlatformRules({ kind: 'graphql', scopes: { 'mail:read': ['query *'] } }),
    };
    const mailGrant = grant({ platformId: 'amail', scopes: ['mail:read'] });
    const [one, two] = of({}, { platform: mail, grants: [mailGrant] });
    expect([one?.platformId, two?.platformId]).toEqual(['amail', 'crm']);
    expect(one).toMatchObject({ callStyle: 'graphql', connections: [] });
    expect(two).not.toHaveProperty('callStyle');
    expect(
      of(
        { grants: [] },
        { platform: undefined as never },
        { policy: policyOf() },
        { platform: { ...mail, suspended: true }, grants: [mailGrant] },
      ),
    ).toEqual([]);
    expect(of({ guardrails: guardrailsOf({ name: 'stop', effect: 'deny' }) })).toEqual([]);
  });

  test("of a child are narrowed by its parent's grant, and expire with either agent", () => {
    const ofChild = parent({
      expiresAt: NOW + 3000,
      grants: [grant({ scopes: ['crm:contacts.read'], expiresAt: NOW + 9000 })],
    });
    const child = agent({ parent: ofChild, expiresAt: NOW + 5000 });
    expect(first({ agent: child })).toMatchObject({ scopes: ['crm:contacts.read'], expiresAt: NOW + 3000 });
    expect(of({ agent: agent({ parent: { ...ofChild, status: 'suspended' } }) })).toEqual([]);
  });
});
