/** Example bodies and answers for the OpenAPI document, by capability. A linter checks each against its schema. */
import { TOKEN_PREFIXES, type TokenKind } from '../../crypto/one-time-token.ts';

export type Examples = { body?: unknown; answers?: Readonly<Record<number, unknown>> };

const UUID = '0199a3c4-7f52-7c1e-9d7a-3f0f6a4b2c11';
const OWNER = '7d0b8a9e-2c55-4f0e-9a51-0d6f3f2b1c88';
const APPROVAL = '4b1c2f6e-5a0d-4c37-8f0e-2f1d9c7b6a53';
const AGENT = 'agt_k3v9x0q2m7p4c8d1t6w5';
const BASE = 'https://broker.example';
const DID = `did:web:broker.example:agents:${AGENT}`;
const NOW = '2026-01-05T09:30:00.000Z';
const TOMORROW = '2026-01-06T09:30:00.000Z';
const PEM = '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq…\n-----END PUBLIC KEY-----\n';
const CHALLENGE = 'q3oQvZ0nO1rS0bq8w3m2uA';
const CREDENTIAL = 'bWV0YS1jcmVkZW50aWFs';

/** Returns a shortened one-time token, for display. */
const token = (kind: TokenKind) => `${TOKEN_PREFIXES[kind]}Qm9x…`;

const bound = { 200: { agent_id: AGENT, owner_id: OWNER, status: 'active', proxy_url: BASE } };

const asked = {
  status: 'pending_approval',
  request_token: token('access_request'),
  poll_url: `/v1/access-request/status/${token('access_request')}`,
  reason_code: 'not_granted',
  message:
    'An owner has been asked for codehost:issues.write on codehost. Poll poll_url until it is no longer pending.',
};

const question = {
  subject: { type: 'agent', id: AGENT },
  action: { name: 'codehost:issues.read' },
  resource: { type: 'platform', id: 'codehost' },
};
const allowed = { decision: true, reason: 'approved', context: { reason: 'approved' } };
const held = {
  decision: false,
  reason: 'approval_required_by_policy',
  require_approval: true,
  context: { reason: 'approval_required_by_policy', require_approval: true },
};

const entity = {
  entity_id: DID,
  authority_id: 'did:web:broker.example',
  action: 'codehost:issues.read',
  resource: 'codehost',
};
const times = { time_requested: NOW, time_evaluated: NOW };

export const EXAMPLES: Readonly<Record<string, Examples>> = {
  'agents.me': {
    answers: {
      200: {
        status: 'approved',
        agent_id: AGENT,
        did: DID,
        name: 'triage',
        owner_id: OWNER,
        org_id: UUID,
        agent_type: 'key',
        agent_status: 'active',
        parent_agent_id: null,
        created_at: NOW,
        expires_at: null,
      },
    },
  },
  'permissions.read': {
    answers: {
      200: {
        data: {
          agent: { id: UUID, name: 'triage', agent_id: AGENT },
          platforms: [
            {
              platformId: 'codehost',
              platformName: 'GitHub',
              scopes: ['codehost:issues.read', 'codehost:issues.write'],
              requireApproval: false,
              approvalScopes: ['codehost:issues.write'],
              constraints: { repos: ['acme/*'] },
              expiresInSeconds: 2_592_000,
            },
          ],
          version: 'Gk3v0n2cVJ0',
          egress: { hosts: ['api.github.com'] },
        },
        _meta: {
          capability: 'permissions.read',
          timestamp: NOW,
          next_actions: [],
          docs: `${BASE}/docs#permissions.read`,
        },
      },
    },
  },
  'agents.children': {
    answers: {
      201: {
        child_agent_id: AGENT,
        bearer_token: 'eyJhbGciOiJFUzI1NiIs…',
        expires_at: TOMORROW,
        granted: [
          {
            platform: 'codehost',
            scopes: ['codehost:issues.read'],
            connection_id: null,
            constraints: { repos: ['acme/*'] },
            require_approval: false,
            expires_at: null,
          },
        ],
      },
    },
  },
  'approvals.read': {
    answers: {
      200: {
        approval_id: APPROVAL,
        status: 'approved',
        created_at: NOW,
        expires_at: TOMORROW,
        executed_at: NOW,
        approval_url: `${BASE}/approve/${APPROVAL}`,
        sentence: 'create an issue in acme/shop: “Broken login”',
        audit_id: UUID,
        result: { status: 201, data: { number: 17 } },
      },
    },
  },
  'approvals.list': {
    answers: {
      200: {
        pending: [
          {
            approval_id: APPROVAL,
            platform_id: 'codehost',
            scope: 'codehost:issues.write',
            created_at: NOW,
            expires_at: TOMORROW,
          },
        ],
        recently_completed: [],
      },
    },
  },
  'access_requests.create': {
    body: { platform: 'codehost', scope: 'codehost:issues.write', reason: 'To file what the nightly build finds.' },
    answers: { 200: asked, 202: asked },
  },
  'access_requests.read': { answers: { 200: { status: 'approved', note: 'For a month.' } } },
  'registrations.create': {
    body: {
      owner_id: OWNER,
      agent_name: 'triage',
      agent_description: 'Sorts new issues.',
      requested_scopes: [{ platformId: 'codehost', scopes: ['codehost:issues.read'] }],
    },
    answers: {
      202: {
        registration_token: token('registration'),
        poll_url: `/v1/register/status/${token('registration')}`,
        status: 'pending',
        client_id: AGENT,
        scope: 'codehost:issues.read',
        expires_in: 86_400,
      },
    },
  },
  'registrations.read': { answers: { 200: { status: 'pending' } } },
  'agents.bind': { body: { bootstrap_token: token('bootstrap'), public_key_pem: PEM }, answers: bound },
  'invites.bind': { body: { bind_secret: token('invite'), public_key_pem: PEM }, answers: bound },
  'secrets.bind': {
    body: { agent_id: AGENT, platform_id: 'codehost', encrypted_secret: 'eyJhbGciOiJFQ0RILUVTIiwi…' },
    answers: { 200: { status: 'bound', agent_id: AGENT, platform_id: 'codehost' } },
  },
  'passkeys.register.finish': {
    body: {
      device_name: 'Phone',
      response: {
        id: CREDENTIAL,
        rawId: CREDENTIAL,
        type: 'public-key',
        response: { clientDataJSON: 'eyJ0eXBlIjoi', attestationObject: 'o2NmbXRkbm9uZQ', transports: ['internal'] },
      },
    },
    answers: { 200: { credential_id: CREDENTIAL, device_name: 'Phone', verified: true } },
  },
  'passkeys.sign.begin': {
    body: { approval_id: APPROVAL },
    answers: {
      200: {
        challenge: CHALLENGE,
        rpId: 'broker.example',
        allowCredentials: [{ id: CREDENTIAL, type: 'public-key', transports: ['internal'] }],
        userVerification: 'preferred',
        timeout: 60_000,
      },
    },
  },
  'passkeys.sign.finish': {
    body: {
      response: {
        id: CREDENTIAL,
        rawId: CREDENTIAL,
        type: 'public-key',
        response: { clientDataJSON: 'eyJ0eXBlIjoi', authenticatorData: 'SZYN5YgOjGh0', signature: 'MEUCIQDx' },
      },
    },
    answers: { 200: { status: 'approved', approval_id: APPROVAL, executed_at: NOW } },
  },
  'diagnostics.report': {
    body: { message: 'Unexpected denied_by_policy from /v1/actions', severity: 'warning', code: 'denied_by_policy' },
    answers: { 201: { id: UUID, received_at: NOW } },
  },
  'authzen.access': { body: question, answers: { 200: allowed } },
  'authzen.evaluation': { body: question, answers: { 200: allowed } },
  'authzen.evaluations': {
    body: { ...question, evaluations: [{}, { action: { name: 'codehost:issues.write' } }] },
    answers: { 200: { evaluations: [allowed, held] } },
  },
  'trqp.authorization': {
    body: entity,
    answers: {
      200: { ...entity, ...times, authorized: false, message: 'scope_not_granted', context: { decision: 'deny' } },
    },
  },
  'trqp.recognition': {
    body: { ...entity, action: '*', resource: '*' },
    answers: {
      200: {
        ...entity,
        action: '*',
        resource: '*',
        ...times,
        recognized: true,
        message:
          'Recognized now. Status, grant, expiry, breakers, guardrails, policy, scope, endpoint, recipients and reach are checked at each call.',
      },
    },
  },
  health: { answers: { 200: { status: 'ok' } } },
  version: { answers: { 200: { service: 'proxy', version: '0.2.0', sha: 'unknown', builtAt: null } } },
};
