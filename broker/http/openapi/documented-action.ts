/** Describes POST /v1/actions for the OpenAPI document. */
import { ActionDenied, NotConnected, NotReady, PendingApproval, PlatformAnswer } from '../governed-answers.ts';
import type { RequestHeader, Route } from '../route.ts';

const AUDIT_ID = '0199a3c4-7f52-7c1e-9d7a-3f0f6a4b2c11';
const APPROVAL_ID = '4b1c2f6e-5a0d-4c37-8f0e-2f1d9c7b6a53';
const TIMESTAMP = '2026-01-05T09:30:00.000Z';

const META = {
  capability: 'actions.execute',
  timestamp: TIMESTAMP,
  next_actions: [{ capability: 'audit.receipt', endpoint: `/v1/audit/${AUDIT_ID}/receipt` }],
  docs: 'https://broker.example/docs#actions.execute',
  audit_id: AUDIT_ID,
};

/** Request headers of every governed call, through any entry point. */
export const CALL_HEADERS = {
  'X-Svc-Caller': {
    description:
      'For whom the call is made, where the platform has one token per person: `jwt <token>` or `id <source>:<id>`.',
    example: 'id slack:U024BE7LH',
  },
  traceparent: {
    description:
      'W3C trace context of the caller: becomes a link of the trace of this call, where there is one. It decides nothing, and is not passed on.',
    example: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  },
  'X-Svc-Session': {
    description: 'Of child identities: a marker of their session, recorded on the audit row.',
    example: 'run-42',
  },
} satisfies Record<string, RequestHeader>;

export const ACTION_DOCUMENTED: Pick<Route, 'description' | 'headers' | 'example' | 'answers'> = {
  description:
    'The agent names a connected platform, an endpoint on it, a method and a scope; the broker decides and, where nothing is in the way, makes the call with a credential that the agent never sees. A 202 means that a person decides: poll the approval, and do not send the call again.',
  headers: {
    'Idempotency-Key': {
      description:
        'Sent again with the same body within 24 hours, the first answer comes again and nothing is done twice.',
      example: 'order-4711',
    },
    ...CALL_HEADERS,
    'X-Svc-Caller': {
      ...CALL_HEADERS['X-Svc-Caller'],
      description: 'For whom the call is made, instead of `caller`: `jwt <token>` or `id <source>:<id>`.',
    },
  },
  example: {
    platform: 'codehost',
    endpoint: '/repos/acme/app/issues',
    method: 'POST',
    scope: 'codehost:issues.write',
    data: { title: 'The build is red' },
    reason: 'The nightly build failed three times.',
  },
  answers: {
    200: {
      description: 'The platform answered, with any status.',
      schema: PlatformAnswer,
      headers: ['Idempotency-Replayed'],
      example: { data: { number: 17 }, _meta: { ...META, upstream_status: 201 } },
    },
    202: {
      description: 'Held for a person to approve.',
      schema: PendingApproval,
      headers: ['Idempotency-Replayed'],
      example: {
        status: 'pending_approval',
        approval_id: APPROVAL_ID,
        message: 'Held until a person decides. Do not send it again; poll the approval instead.',
        approval_url: `https://broker.example/approve/${APPROVAL_ID}`,
        sentence: 'create an issue in acme/shop: “Broken login”',
        expires_at: '2026-01-06T09:30:00.000Z',
        _meta: {
          ...META,
          next_actions: [{ capability: 'approvals.read', endpoint: `/v1/approvals/${APPROVAL_ID}` }],
        },
      },
    },
    403: {
      description: 'Refused, or the agent is halted: the reason.',
      schema: ActionDenied,
      headers: ['Retry-After'],
      example: {
        error: 'Permission denied',
        reason: 'scope_not_granted',
        detail: 'The agent has no grant of codehost:issues.write.',
        correlation_id: AUDIT_ID,
        audit_id: AUDIT_ID,
        report_hint: {
          url: 'https://broker.example/v1/agents/self/diagnostics',
          suggested_payload: { message: 'Unexpected scope_not_granted from /v1/actions' },
        },
        _meta: { ...META, next_actions: [{ capability: 'access_requests.create', endpoint: '/v1/access-request' }] },
      },
    },
    409: {
      description: 'The agent or the connection is not ready, or the idempotency key is already used.',
      schema: NotReady,
      headers: ['Retry-After'],
      example: {
        error: 'platform_reauth_needed',
        platform: 'codehost',
        consent_requested: false,
        message: 'The platform refused the stored credential. An owner has to connect it again.',
        correlation_id: AUDIT_ID,
        audit_id: AUDIT_ID,
      },
    },
    412: {
      description: 'The platform, or the person, is not connected.',
      schema: NotConnected,
      example: {
        error: 'consent_required',
        reason: 'not_consented',
        platform: 'docs',
        message: 'This person has not connected the platform.',
        correlation_id: AUDIT_ID,
        audit_id: AUDIT_ID,
      },
    },
    502: {
      description: 'The platform did not answer, or its answer cannot be passed on.',
      headers: ['Idempotency-Replayed'],
    },
  },
};
