import { eventStream } from '../../event-stream.ts';
import { route } from '../../route.ts';

/** GET /owner/events: `inbox` events, `{waiting: {approvals, access_requests, registrations}}`, immediately and after every change. */
export const ownerEvents = route({
  method: 'GET',
  path: '/owner/events',
  auth: 'owner',
  role: 'viewer',
  concurrency: { perAddress: 100, overall: 5_000 },
  capability: 'owner.events',
  summary: 'The number of pending decisions, sent as it changes (Server-Sent Events).',
  answers: {
    200: { description: 'A stream of events until the end of the session.', type: 'text/event-stream' },
  },
  errors: ['too_many_streams'],
  handle: async ({ services, who, stillMay }) =>
    eventStream(
      (stream) =>
        services.inbox.follow(who.organisationId, {
          waiting: (waiting) => stream.send('inbox', { waiting }),
          over: () => stream.end(),
        }),
      stillMay,
    ),
});
