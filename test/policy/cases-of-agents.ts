/** Cases of verdicts that depend on the agent, its breakers and its parent. */
import type { BreakerFacts, ParentFacts } from '../../broker/policy/facts.ts';
import { agent, type Case, facts, grant, NOW, parent, READ, send } from './world.ts';

export const open: BreakerFacts = {
  cause: 'breaker_api_error',
  openedAt: NOW - 1000,
  openUntil: NOW + 59_000,
  trialUntil: null,
};
export const childOf = (changes: Partial<ParentFacts>) => facts({ agent: agent({ parent: parent(changes) }) });
export const AGENT_CASES: Case[] = [
  ['a suspended agent', facts({ agent: agent({ status: 'suspended' }) }), READ, ['deny', 'agent_suspended']],
  ['a revoked agent', facts({ agent: agent({ status: 'revoked' }) }), READ, ['deny', 'agent_revoked']],
  ['a deleted agent', facts({ agent: agent({ status: 'deleted' }) }), READ, ['deny', 'agent_revoked']],
  [
    'an agent that has not collected its key yet',
    facts({ agent: agent({ status: 'pending' }) }),
    READ,
    ['deny', 'agent_inactive'],
  ],
  [
    'an agent that has no key yet',
    facts({ agent: agent({ status: 'pending_bind' }) }),
    READ,
    ['deny', 'agent_inactive'],
  ],
  [
    'CH-15 an agent that expires now',
    facts({ agent: agent({ expiresAt: NOW }) }),
    READ,
    ['deny', 'agent_revoked', /expired/],
  ],
  [
    'an agent that expires in one millisecond',
    facts({ agent: agent({ expiresAt: NOW + 1 }) }),
    READ,
    ['allow', 'approved'],
  ],
  ['an open breaker', facts({ breakers: [open] }), READ, ['deny', 'circuit_breaker_open']],
  ['an open breaker and no grant', facts({ breakers: [open], grants: [] }), READ, ['deny', 'circuit_breaker_open']],
  [
    'an open breaker and a grant that expired',
    facts({ breakers: [open], grants: [grant({ expiresAt: NOW })] }),
    READ,
    ['deny', 'circuit_breaker_open'],
  ],
  [
    'an open breaker of one platform, which does not halt the agent, and no grant',
    facts({ breakers: [{ ...open, platformId: 'demo' }], grants: [] }),
    READ,
    ['deny', 'no_permission_record'],
  ],
  [
    'a half-open breaker with a free trial',
    facts({ breakers: [{ ...open, openUntil: NOW }] }),
    READ,
    ['allow', 'approved'],
  ],
  [
    'a half-open breaker with a trial in flight',
    facts({ breakers: [{ ...open, openUntil: NOW, trialUntil: NOW + 1 }] }),
    READ,
    ['deny', 'circuit_breaker_open'],
  ],
  ['CH-11 a child of an active parent', childOf({}), READ, ['allow', 'approved']],
  [
    'CH-11 a child of a suspended parent',
    childOf({ status: 'suspended' }),
    READ,
    ['deny', 'agent_suspended', /parent/],
  ],
  ['CH-11 a child of a revoked parent', childOf({ status: 'revoked' }), READ, ['deny', 'agent_revoked', /parent/]],
  [
    'CH-11 a child of a revoked parent without grants',
    childOf({ status: 'revoked', grants: [] }),
    READ,
    ['deny', 'agent_revoked'],
  ],
  ['CH-11 a child of a deleted parent', childOf({ status: 'deleted' }), READ, ['deny', 'agent_revoked']],
  ['CH-11 a child of a parent that expired', childOf({ expiresAt: NOW }), READ, ['deny', 'agent_revoked']],
  [
    'CH-11 a child whose parent lost the scope',
    childOf({ grants: [grant({ scopes: ['crm:contacts.write'] })] }),
    READ,
    ['deny', 'scope_not_granted'],
  ],
  ['CH-11 a child whose parent lost the grant', childOf({ grants: [] }), READ, ['deny', 'scope_not_granted']],
  [
    'CH-11 a child whose parent has the grant on another connection',
    childOf({ grants: [grant({ connectionId: 'conn-2' })] }),
    READ,
    ['deny', 'scope_not_granted'],
  ],
  [
    'CH-11 a child whose parent names the default connection',
    childOf({ grants: [grant({ connectionId: 'conn-main' })] }),
    READ,
    ['allow', 'approved'],
  ],
  [
    "CH-11 a child whose parent's grant expired",
    childOf({ grants: [grant({ expiresAt: NOW })] }),
    READ,
    ['deny', 'grant_expired'],
  ],
  [
    "CH-11 a child whose parent's grant needs approval",
    childOf({ grants: [grant({ requireApproval: true })] }),
    READ,
    ['hold', 'approval_required_by_grant'],
  ],
  [
    "CH-05 a child under its parent's recipients",
    childOf({ grants: [grant({ constraints: { recipients: ['@acme.example'] } })] }),
    send({ to: 'a@evil.example' }),
    ['deny', 'recipient_not_allowed'],
  ],
];
