import { registrationStatusAt } from '../../admin/registration.ts';
import type { Services } from '../../services.ts';
import { findRegistrationByToken } from '../../store/registrations.ts';
import type { RegistrationTable } from '../../store/schema.ts';
import { type EventStream, eventStream } from '../event-stream.ts';
import { loadRegistration, PRIVATE, Token } from '../registering.ts';
import { route } from '../route.ts';

/** How often the store is asked though nothing was heard: a missed notice costs no more than this. */
const LOOK_MS = 15_000;

/** Events are counted: a registration waits, and then something becomes of it. */
const idOf = (status: RegistrationTable['status']): string => (status === 'pending' ? '1' : '2');

/** GET /v1/register/stream/{token}: one event for each status, the last of which ends it. No key material is in them. */
export const registrationStream = route({
  method: 'GET',
  path: '/v1/register/stream/{token}',
  auth: 'none',
  limit: { name: 'registration-stream', perMinute: 60, per: 'address' },
  atOnce: { perAddress: 20, perToken: 5, inAll: 1_000 },
  capability: 'registrations.stream',
  summary: 'Tells what becomes of a registration (Server-Sent Events).',
  params: { token: Token },
  answers: {
    200: {
      description: 'Events `pending`, `approved`, `rejected`, `expired`; all but the first end the stream.',
      type: 'text/event-stream',
    },
    204: 'The last event was received already (Last-Event-ID): there is nothing more to come for.',
  },
  errors: ['not_found', 'rate_limited', 'too_many_streams'],
  handle: async ({ services, params, request, stillMay }) => {
    const found = await loadRegistration(services.broker, params.token);
    const seen = request.headers['last-event-id'];
    const status = registrationStatusAt(found, services.broker.clock());
    if (status !== 'pending' && seen === idOf(status)) return { status: 204, headers: PRIVATE };
    const reply = eventStream((stream) => follow(services, found, String(seen), stream), stillMay);
    return { ...reply, headers: { ...reply.headers, ...PRIVATE } };
  },
});

/** Tells until nothing more can become of it. Answers what ends that early. */
function follow(
  services: Services,
  { id, token_hash }: RegistrationTable,
  seen: string,
  stream: EventStream,
): () => void {
  const { broker, changes } = services;
  const watch = changes.watch(id);
  let told = seen;
  const tell = async (): Promise<void> => {
    while (!watch.over()) {
      const found = await findRegistrationByToken(broker.store.db, token_hash);
      if (!found || watch.over()) break;
      const now = broker.clock();
      const status = registrationStatusAt(found, now);
      if (told !== idOf(status)) stream.send(status, shown(found, status), idOf(status));
      told = idOf(status);
      if (status !== 'pending') break;
      await watch.news(Math.min(LOOK_MS, Math.max(1, found.expires_at - now)));
    }
  };
  void tell()
    // The reader comes again by itself, and finds what it missed.
    .catch((error) => broker.log.warn({ err: error }, 'a registration could not be followed'))
    .finally(() => {
      watch.end();
      stream.end();
    });
  return watch.end;
}

const shown = ({ agent_id, expires_at }: RegistrationTable, status: RegistrationTable['status']) => ({
  status,
  agent_id: status === 'approved' ? agent_id : null,
  expires_at: new Date(expires_at).toISOString(),
});
