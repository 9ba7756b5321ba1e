import { followRegistration, type RegistrationState } from '../../admin/registrations/follow-registration.ts';
import { loadRegistrationByToken } from '../../admin/registrations/read-registration.ts';
import { statusAt } from '../../audit/approval-state.ts';
import { eventStream } from '../event-stream.ts';
import { PRIVATE, Token } from '../registration-request.ts';
import { route } from '../route.ts';

/** Event ids: 1 while a registration is pending, 2 once it is settled. */
const idOf = (status: RegistrationState['status']): string => (status === 'pending' ? '1' : '2');

/** GET /v1/register/stream/{token}: one event for each status; the last one ends the stream. Events contain no key material. */
export const registrationStream = route({
  method: 'GET',
  path: '/v1/register/stream/{token}',
  auth: 'none',
  limit: { name: 'registration-stream', perMinute: 60, per: 'address' },
  concurrency: { perAddress: 20, perToken: 5, overall: 1_000 },
  organisationOf: async ({ broker }, token) =>
    (await loadRegistrationByToken(broker, token)).organisation_id ?? undefined,
  capability: 'registrations.stream',
  summary: 'Tells what becomes of a registration (Server-Sent Events).',
  headers: {
    'Last-Event-ID': { description: 'The `id` of the last event that was received, sent on reconnecting.' },
  },
  params: { token: Token },
  answers: {
    200: {
      description:
        'Events `pending`, `approved`, `rejected`, `expired`; all but the first end the stream. `expires_at` of `pending` is until when an owner can decide, and of `approved` until when the key can be collected.',
      type: 'text/event-stream',
    },
    204: 'The last event was received already (Last-Event-ID): there is nothing more to come for.',
  },
  errors: ['not_found', 'rate_limited', 'too_many_streams'],
  handle: async ({ services, params, request, stillMay }) => {
    const found = await loadRegistrationByToken(services.broker, params.token);
    const seen = request.headers['last-event-id'];
    const status = statusAt(found, services.broker.clock());
    if (status !== 'pending' && seen === idOf(status)) return { status: 204, headers: PRIVATE };
    const reply = eventStream((stream) => {
      let lastSent = String(seen);
      const tell = (news: RegistrationState) => {
        const id = idOf(news.status);
        if (lastSent !== id) stream.send(news.status, shown(news), id);
        lastSent = id;
      };
      return followRegistration(services, found, tell, stream.end);
    }, stillMay);
    return { ...reply, headers: { ...reply.headers, ...PRIVATE } };
  },
});

const shown = ({ status, agent_id, expires_at }: RegistrationState) => ({
  status,
  ...(status === 'approved' && { agent_id }),
  ...(expires_at !== null && { expires_at: new Date(expires_at).toISOString() }),
});
