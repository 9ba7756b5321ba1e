/** Plain facts for the tests of decisions: an agent with one grant on a small CRM, which may read and write contacts. */

import type {
  AgentFacts,
  Ask,
  CallAsk,
  Facts,
  Grant,
  JsonObject,
  ParentFacts,
  RuleSource,
  Verdict,
} from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { compileGuardrails, compilePolicy } from '../../broker/policy/rules/compile.ts';

export const NOW = Date.UTC(2026, 0, 15, 12);

export const crmRules = compilePlatformRules({
  kind: 'rest',
  scopes: {
    'crm:contacts.read': ['GET /contacts', 'GET /contacts/*'],
    'crm:contacts.write': ['POST /contacts', 'PATCH /contacts/*'],
    'crm:messages.send': ['POST /messages'],
    'crm:admin': ['GET /contacts/export', 'DELETE /contacts/*', 'GET /admin/**'],
    'crm:ghost': [],
  },
  recipients: { 'POST /messages': ['/to', '/cc/*', '/replyTo/email'] },
});

export const agent = (changes: Partial<AgentFacts> = {}): AgentFacts => ({
  id: '0190a5b4-0000-7000-8000-000000000001',
  agentId: 'agt_aaaaaaaaaaaaaaaaaaaa',
  name: 'triage',
  ownerId: '0190a5b4-0000-7000-8000-000000000002',
  organisationId: '0190a5b4-0000-7000-8000-000000000003',
  status: 'active',
  statusSince: null,
  statusCause: null,
  statusDetail: null,
  expiresAt: null,
  ...changes,
});

export const parent = (changes: Partial<ParentFacts> = {}): ParentFacts => ({
  id: '0190a5b4-0000-7000-8000-000000000009',
  agentId: 'agt_pppppppppppppppppppp',
  name: 'parent',
  ownerId: '0190a5b4-0000-7000-8000-000000000002',
  status: 'active',
  expiresAt: null,
  grants: [grant({ id: 'grant-of-parent' })],
  breakers: [],
  ...changes,
});

export const grant = (changes: Partial<Grant> = {}): Grant => ({
  id: 'grant-1',
  platformId: 'crm',
  connectionId: null,
  scopes: ['crm:contacts.read', 'crm:contacts.write', 'crm:messages.send'],
  constraints: {},
  requireApproval: false,
  expiresAt: null,
  ...changes,
});

export const policyOf = (...rules: RuleSource[]) => compilePolicy({ id: 'p1', name: 'careful', version: 1, rules });
export const guardrailsOf = (...rules: RuleSource[]) => compileGuardrails({ version: 1, rules });

export const ALLOW_ALL: RuleSource = { effect: 'allow' };

/** Compiled once, because compiling takes longer than most of the decisions. */
const ALLOWING = policyOf(ALLOW_ALL);
const UNGUARDED = guardrailsOf();

export const facts = (changes: Partial<Facts> = {}): Facts => ({
  agent: agent(),
  platform: {
    platformId: 'crm',
    name: 'CRM',
    version: 1,
    suspended: false,
    defaultConnectionId: 'conn-main',
    rules: crmRules,
  },
  grants: [grant()],
  policy: ALLOWING,
  guardrails: UNGUARDED,
  breakers: [],
  ...changes,
});

export const call = (changes: Partial<CallAsk> = {}): CallAsk => ({
  method: 'GET',
  path: '/contacts',
  query: '',
  headers: {},
  body: undefined,
  ...changes,
});

export const ask = (changes: Partial<Ask> = {}): Ask => ({ platformId: 'crm', scope: 'crm:contacts.read', ...changes });

export const READ: Ask = ask({ call: call() });
export const WRITE: Ask = ask({ scope: 'crm:contacts.write', call: call({ method: 'POST', body: { name: 'Ann' } }) });

/** A row of the tables of verdicts: a sentence, the facts, the ask, and the expected verdict. */
export type Case = [
  sentence: string,
  facts: Facts,
  ask: Ask,
  verdict: [kind: Verdict['kind'], reason: Verdict['reason'], detail?: RegExp],
];

/** An ask to send a message. */
export const send = (body: Record<string, never> | object) =>
  ask({ scope: 'crm:messages.send', call: call({ method: 'POST', path: '/messages', body: body as never }) });

/** A call to a GraphQL endpoint. */
export const graphqlCall = (body: JsonObject | undefined, rest: Partial<CallAsk> = {}): CallAsk => ({
  method: 'POST',
  path: '/',
  query: '',
  headers: {},
  body,
  ...rest,
});
