/** When a call in flight must stop because its agent lost access, and when it continues. */
import { describe, expect, test } from 'vitest';
import { accessEnded, credentialEnded } from '../../broker/policy/access-ended.ts';
import { decide } from '../../broker/policy/decide.ts';
import type { BreakerFacts, Facts } from '../../broker/policy/facts.ts';
import { ALLOW_ALL, agent, facts, grant, guardrailsOf, NOW, parent, policyOf } from './world.ts';

const ACCESS = { platformId: 'crm', scope: 'crm:contacts.read', through: 'conn-main' };
const given = (changes: Partial<Facts> = {}) => facts({ policy: policyOf(ALLOW_ALL), ...changes });
const platform = given().platform!;
const OPEN: BreakerFacts = {
  cause: 'breaker_api_error',
  openedAt: NOW - 1,
  openUntil: NOW + 60_000,
  trialUntil: null,
};
const connected = (status: 'active' | 'reauth_needed' | 'not_connected') =>
  grant({ connectionId: 'conn-main', connection: { label: 'main', status } });

describe('a call in flight', () => {
  test.each<[string, Partial<Facts>, string]>([
    ['a suspended agent', { agent: agent({ status: 'suspended' }) }, 'agent_suspended'],
    ['a revoked agent', { agent: agent({ status: 'revoked' }) }, 'agent_revoked'],
    ['an expired agent', { agent: agent({ expiresAt: NOW }) }, 'agent_revoked'],
    ['a suspended parent', { agent: agent({ parent: parent({ status: 'suspended' }) }) }, 'agent_suspended'],
    ['a parent without the grant', { agent: agent({ parent: parent({ grants: [] }) }) }, 'scope_not_granted'],
    [
      'a parent whose grant has expired',
      { agent: agent({ parent: parent({ grants: [grant({ expiresAt: NOW })] }) }) },
      'grant_expired',
    ],
    ['no grant', { grants: [] }, 'no_permission_record'],
    ['a grant on another connection', { grants: [grant({ connectionId: 'conn-other' })] }, 'no_permission_record'],
    ['no default connection', { platform: { ...platform, defaultConnectionId: null } }, 'no_permission_record'],
    ['an expired grant', { grants: [grant({ expiresAt: NOW })] }, 'grant_expired'],
    ['a grant without the scope', { grants: [grant({ scopes: ['crm:contacts.write'] })] }, 'scope_not_granted'],
    ['a suspended platform', { platform: { ...platform, suspended: true } }, 'platform_suspended'],
    [
      'another default connection',
      { platform: { ...platform, defaultConnectionId: 'conn-2' } },
      'no_permission_record',
    ],
    ['a connection without a credential', { grants: [connected('not_connected')] }, 'platform_not_connected'],
  ])('is stopped by %s', (_, changes, reason) => {
    expect(accessEnded(given(), ACCESS, NOW)).toBeUndefined();
    const ended = accessEnded(given(changes), ACCESS, NOW);
    expect(ended).toMatchObject({ reason, detail: expect.stringMatching(/^\S.+/) });
    // With another connection, a new call could still begin.
    const isElsewhere = ['platform_not_connected', 'no_permission_record'].includes(reason);
    if (!isElsewhere) expect(decide(given(changes), ACCESS, NOW)).toMatchObject({ kind: 'deny', reason });
  });

  test('is stopped by a grant without a further scope that the call needs', () => {
    const both = given({ grants: [grant({ scopes: ['crm:contacts.read', 'crm:contacts.write'] })] });
    const further = ['crm:contacts.write'];
    expect(accessEnded(both, { ...ACCESS, further }, NOW)).toBeUndefined();
    const one = given({ grants: [grant({ scopes: ['crm:contacts.read'] })] });
    expect(accessEnded(one, ACCESS, NOW)).toBeUndefined();
    expect(accessEnded(one, { ...ACCESS, further }, NOW)).toMatchObject({ reason: 'scope_not_granted' });
  });

  test.each<[string, Partial<Facts>]>([
    ['another policy', { policy: policyOf({ effect: 'deny' }) }],
    ['a guardrail', { guardrails: guardrailsOf({ name: 'none', effect: 'deny' }) }],
    ['an open breaker', { breakers: [OPEN] }],
    ['an open breaker of the parent', { agent: agent({ parent: parent({ breakers: [OPEN] }) }) }],
    ['a grant that needs an approval now', { grants: [grant({ requireApproval: true })] }],
    ['a grant with new constraints', { grants: [grant({ constraints: { repos: ['acme/app'] } })] }],
    [
      'a second grant that the call did not use',
      { grants: [grant(), grant({ id: 'g-2', connectionId: 'conn-main', scopes: [] })] },
    ],
    ['a credential that the platform refused', { grants: [connected('reauth_needed')] }],
    [
      'a connection to which people bring their own tokens',
      { platform: { ...platform, perPerson: true }, grants: [connected('not_connected')] },
    ],
  ])('continues after %s', (_, changes) => {
    expect(accessEnded(given(changes), ACCESS, NOW)).toBeUndefined();
  });
});

test('a call is stopped by the first of its credentials that has ended', () => {
  const lent = [
    { kind: 'static_key', id: 'key-1' },
    { kind: 'person_tokens', id: 'tokens-1' },
  ] as const;
  expect(credentialEnded(lent, new Set(['key-1', 'tokens-1', 'key-2']))).toBeUndefined();
  expect(credentialEnded(lent, new Set(['key-1']))).toMatchObject({ reason: 'person_tokens_ended' });
  expect(credentialEnded(lent, new Set())).toMatchObject({ reason: 'static_key_ended' });
});
