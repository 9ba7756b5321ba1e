/** Endpoints for probes, balancers and monitoring (specification, Discovery and health). */
import { z } from 'zod';
import { isOperator } from '../operator.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const Ok = z.object({ status: z.literal('ok') });
const Unavailable = z.object({
  status: z.literal('unavailable'),
  reasons: z
    .array(z.string())
    .optional()
    .describe('for requests from the same machine, without a proxy, or with METRICS_TOKEN as bearer'),
});

const readiness = (path: '/health' | '/readyz', summary: string) =>
  route({
    method: 'GET',
    path,
    auth: 'none',
    capability: path.slice(1),
    summary,
    description:
      'Ready means: the store takes writes, the clock agrees with the store, and the process is not stopping. Answers within a second.',
    answers: {
      200: { description: 'It is ready.', schema: Ok },
      503: {
        description: 'It is not: send calls to another replica.',
        schema: Unavailable,
        headers: ['Retry-After'],
      },
    },
    errors: [],
    handle: async ({ services, request }) => {
      const reasons = await services.readiness.problems();
      if (reasons.length === 0) return json(200, { status: 'ok' });
      const isForOperator = isOperator(request, services.broker.config);
      return json(503, { status: 'unavailable', ...(isForOperator && { reasons }) }, { 'Retry-After': '5' });
    },
  });

/** GET /health: 200 only while the broker can take calls. */
export const health = readiness('/health', 'Whether the broker can take calls.');

/** GET /readyz: the same, for balancers. */
export const ready = readiness('/readyz', 'Whether this process can take calls, for balancers.');

/** GET /livez: checks no dependency, so that an outage of the store restarts no process. */
export const live = route({
  method: 'GET',
  path: '/livez',
  auth: 'none',
  capability: 'livez',
  summary: 'Whether this process answers at all, for the supervisor that restarts it.',
  answers: { 200: { description: 'It does.', schema: Ok } },
  errors: [],
  handle: async () => json(200, { status: 'ok' }),
});
