/** Consents of people, started by agents (specification, Per-person consent). */
import { z } from 'zod';
import { startConsent } from '../../admin/people/start-consent.ts';
import { readCaller } from '../../calls/caller.ts';
import { CallerIdentity, text } from '../../wire/action.ts';
import { consentStatusReply, hasConsentEnded, readConsent, settledConsent } from '../consent-wait.ts';
import { Refusal } from '../errors.ts';
import { ActionDenied } from '../governed-answers.ts';
import { stoppedReply } from '../halted.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';
import { consentFields } from '../unready.ts';
import { Waiting } from '../waiting.ts';

const PATH = '/v1/consent/caller/start';

const TOKEN = 'cns_Gk1Zb0rXv3mQ8s7dYc2hTnLpWaEfJuR9iKoBxVtCzM0';
const UNTIL = '2026-01-05T10:00:00.000Z';

/** POST /v1/consent/caller/start */
export const callerConsentStart = route({
  method: 'POST',
  path: PATH,
  auth: 'agent',
  limit: { name: 'consent-starts', perMinute: 60, per: 'family' },
  capability: 'consent.caller_start',
  summary: 'Begins the consent of a person before the first call for them.',
  headers: {
    'X-Svc-Caller': {
      description: 'Whose consent it is, instead of `caller`: `jwt <token>` or `id <source>:<id>`.',
      example: 'id slack:U024BE7LH',
    },
  },
  example: { platform: 'calendar', caller: { source: 'slack', id: 'U024BE7LH' } },
  body: z.strictObject({
    platform: text(64).min(1).describe('platform id'),
    caller: CallerIdentity.optional().describe('whose consent it is; required unless the header X-Svc-Caller says it'),
    connection_id: z
      .guid()
      .transform((id) => id.toLowerCase())
      .optional()
      .describe('which connection, when the platform has several; the one that a call would use when left out'),
  }),
  answers: {
    202: {
      description: 'The link for the person, and where to wait for them.',
      schema: z
        .object({
          status: z.literal('consent_pending'),
          consent_url: z.url().describe('where the person goes'),
          consent_token: z.string(),
          expires_at: z.iso.datetime(),
          poll_url: z.string().describe('where to poll, with ?wait=50'),
          message: z.string().optional(),
        })
        .meta({ id: 'CallerConsentPending' }),
      example: {
        status: 'consent_pending',
        consent_url: `https://broker.example/me/consent/${TOKEN}`,
        consent_token: TOKEN,
        expires_at: UNTIL,
        poll_url: `/v1/consent/caller/status/${TOKEN}`,
      },
    },
    403: { description: 'The agent is halted.', schema: ActionDenied, headers: ['Retry-After'] },
  },
  tooLargeIsMalformed: true,
  onMalformed: async (context, { code, detail }) => {
    const stopped = stoppedReply(context, PATH);
    if (stopped) return stopped;
    throw new Refusal(code, detail);
  },
  errors: ['invalid_request', 'not_on_plan', 'agent_inactive', 'conflict', 'rate_limited', 'too_many_consents'],
  handle: async (context) => {
    const stopped = stoppedReply(context, PATH);
    if (stopped) return stopped;
    const { services, who, body, request } = context;
    const { platform: platformId, connection_id: connectionId } = body;
    const read = readCaller(request.headersDistinct['x-svc-caller'], body.caller);
    if (!read.ok) throw new Refusal('invalid_request', read.error);
    const { caller } = read;
    if (caller === undefined)
      throw new Refusal('invalid_request', 'Say whose consent it is, in "caller" or the header X-Svc-Caller.');
    const begun = await startConsent(services, who, { platformId, caller, connectionId });
    switch (begun.kind) {
      case 'begun':
        return json(202, {
          status: 'consent_pending',
          ...consentFields(services.broker.baseUrl, begun.consent),
          message: 'Give the person consent_url, and poll poll_url with ?wait=50 until it is completed.',
        });
      case 'not_on_plan':
        throw new Refusal('not_on_plan', begun.detail);
      case 'unsuitable':
        throw new Refusal('conflict', begun.detail);
      case 'unidentified':
        throw new Refusal('invalid_request', `caller: ${begun.detail}`);
      case 'too_many':
        throw new Refusal('too_many_consents', begun.detail, { headers: { 'Retry-After': '60' } });
    }
  },
});

/**
 * Limits of concurrent waiting requests: per token, per address of an organisation, and in total with a reserve. Further requests are answered
 * immediately.
 */
const WAITING = { ofToken: 1, ofAddress: 20, ofAll: 500 };

/** GET /v1/consent/caller/status/{token}: the token is the capability. */
export const callerConsentStatus = route({
  method: 'GET',
  path: '/v1/consent/caller/status/{token}',
  auth: 'none',
  limit: { name: 'consent-status', perMinute: 120, per: 'address' },
  capability: 'consent.caller_status',
  summary: 'What became of a consent. With `wait` it is answered as soon as that is known.',
  params: { token: z.string().describe('the consent_token') },
  query: Waiting,
  answers: {
    200: {
      description: 'Its status, without data about the person.',
      schema: z
        .object({
          status: z.enum(['pending', 'completed', 'expired']),
          platform_id: z.string(),
          expires_at: z.iso.datetime(),
        })
        .meta({ id: 'CallerConsent' }),
      example: { status: 'completed', platform_id: 'calendar', expires_at: UNTIL },
    },
  },
  errors: ['invalid_request', 'not_found', 'rate_limited'],
  handle: async (context) => {
    const { services, params, query, limits, source } = context;
    const found = await readConsent(context, params.token);
    if (query.wait === 0 || hasConsentEnded(found, services.broker.clock())) return consentStatusReply(context, found);
    const slots = { perKey: WAITING.ofAddress, overall: WAITING.ofAll };
    const leave = [
      limits.enter('consent-waits-of-token', { perKey: WAITING.ofToken }, { key: found.id }),
      limits.enter('consent-waits', slots, { key: source, organisation: found.organisation_id }),
    ];
    try {
      const mayWait = leave.every((one) => one !== undefined);
      return consentStatusReply(context, mayWait ? await settledConsent(context, params.token, query.wait) : found);
    } finally {
      for (const one of leave) one?.();
    }
  },
});
