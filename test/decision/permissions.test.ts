import { describe, expect, test } from 'vitest';
import type { Facts } from '../../broker/decision/facts.ts';
import { compilePlatformRules } from '../../broker/decision/operation.ts';
import { effectivePermissions, nextChange, toWirePermissions } from '../../broker/decision/permissions.ts';
import { ALLOW_ALL, agent, facts, grant, guardrailsOf, NOW, parent, policyOf } from './world.ts';

const of = (...changes: Partial<Facts>[]) =>
  effectivePermissions(
    changes.map((change) => ({ facts: facts(change) })),
    NOW,
  );
const first = (changes: Partial<Facts>) => of(changes)[0];

describe('effective permissions', () => {
  test('a plain grant', () => {
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
            scopes: ['crm:contacts.read', 'crm:contacts.write', 'crm:messages.send'],
            requireApproval: false,
            default: true,
          },
        ],
        expiresAt: null,
        changesAt: null,
      },
    ]);
  });

  test('scopes that are denied are not there, held and conditional ones are marked', () => {
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

  test('scopes that no operation of the manifest falls under are marked', () => {
    const grants = [grant({ scopes: ['crm:contacts.read', 'crm:ghost', 'crm:elsewhere'] })];
    expect(first({ grants })).toMatchObject({ unenforcedScopes: ['crm:elsewhere', 'crm:ghost'] });
  });

  test('a grant that needs approval, its constraints and its expiry', () => {
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

  test('the ETag is made over values that stay the same while time passes', () => {
    const given = { facts: facts({ grants: [grant({ expiresAt: NOW + 90_000 })] }) };
    const at = (now: number) => effectivePermissions([given], now);
    expect(at(NOW + 5000)).toEqual(at(NOW));
    expect(at(NOW + 90_000)).toEqual([]);
    expect(nextChange(at(NOW))).toBe(NOW + 90_000);
    expect(nextChange(of({}))).toBeNull();
  });

  test('the grant on another connection may be the first that ends', () => {
    const given = {
      facts: facts({
        grants: [
          grant({ expiresAt: NOW + 90_000 }),
          grant({ id: 'b', connectionId: 'conn-2', expiresAt: NOW + 60_000 }),
          grant({ id: 'c', connectionId: 'conn-3', expiresAt: NOW - 1 }),
        ],
      }),
    };
    expect(nextChange(effectivePermissions([given], NOW))).toBe(NOW + 60_000);
    expect(nextChange(effectivePermissions([given], NOW + 60_000))).toBe(NOW + 90_000);
  });

  test('several connections, of which the top level describes the default one', () => {
    const grants = [
      grant({ id: 'b', connectionId: 'conn-2', scopes: ['crm:contacts.write'] }),
      grant({ id: 'a', scopes: ['crm:contacts.read'] }),
    ];
    const [permissions] = effectivePermissions(
      [{ facts: facts({ grants }), connectionLabels: new Map([['conn-2', 'second']]) }],
      NOW,
    );
    expect(permissions?.scopes).toEqual(['crm:contacts.read']);
    expect(permissions?.connections).toEqual([
      {
        connection_id: 'conn-2',
        label: 'second',
        scopes: ['crm:contacts.write'],
        requireApproval: false,
        default: false,
      },
      { connection_id: 'conn-main', label: null, scopes: ['crm:contacts.read'], requireApproval: false, default: true },
    ]);
  });

  test('two grants on one connection are one item: the grant that a call there uses', () => {
    const grants = [
      grant({ id: 'default' }),
      grant({ id: 'named', connectionId: 'conn-main', scopes: ['crm:contacts.read'] }),
    ];
    expect(first({ grants })?.connections).toEqual([
      { connection_id: 'conn-main', label: null, scopes: ['crm:contacts.read'], requireApproval: false, default: true },
    ]);
  });

  test('platforms are sorted, and left out when nothing can be used', () => {
    const mail = {
      platformId: 'amail',
      name: 'Mail',
      suspended: false,
      defaultConnectionId: null,
      rules: compilePlatformRules({ kind: 'graphql', scopes: { 'mail:read': ['query *'] } }),
    };
    const mailGrant = grant({ platformId: 'amail', scopes: ['mail:read'] });
    const [one, two] = of({}, { platform: mail, grants: [mailGrant] });
    expect([one?.platformId, two?.platformId]).toEqual(['amail', 'crm']);
    expect(one).toMatchObject({ callStyle: 'graphql', connections: [{ connection_id: null, default: true }] });
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

  test("a child's permissions are narrowed by its parent's grant, and end with either's life", () => {
    const ofChild = parent({
      expiresAt: NOW + 3000,
      grants: [grant({ scopes: ['crm:contacts.read'], expiresAt: NOW + 9000 })],
    });
    const child = agent({ parent: ofChild, expiresAt: NOW + 5000 });
    expect(first({ agent: child })).toMatchObject({ scopes: ['crm:contacts.read'], expiresAt: NOW + 3000 });
    expect(of({ agent: agent({ parent: { ...ofChild, status: 'suspended' } }) })).toEqual([]);
  });
});
