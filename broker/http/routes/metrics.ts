/** Metrics for monitoring. */
import { Refusal } from '../errors.ts';
import { isOperator } from '../operator.ts';
import { route } from '../route.ts';

/** GET /metrics: for the operator. Other clients get a 404, or a 401 where a token is configured. */
export const metrics = route({
  method: 'GET',
  path: '/metrics',
  auth: 'none',
  limit: { name: 'metrics', perMinute: 60, per: 'address', counts: 'failures' },
  capability: 'metrics',
  summary: 'Metrics of this process, for Prometheus.',
  description:
    'For requests from the same machine, without a proxy, or with METRICS_TOKEN as bearer. No label names an agent, a person or a repository.',
  answers: { 200: { description: 'The metrics, in the text format of Prometheus.', type: 'text/plain' } },
  errors: ['missing_token', 'invalid_token', 'not_found', 'rate_limited'],
  handle: async ({ services, request, headers }) => {
    const { config, metrics: measured } = services.broker;
    if (measured.instruments === undefined) throw new Refusal('not_found', 'No such route.');
    if (!isOperator(request, config)) {
      if (config.metricsToken === undefined) throw new Refusal('not_found', 'No such route.');
      if (headers.authorization === undefined)
        throw new Refusal('missing_token', 'Send METRICS_TOKEN: Authorization: Bearer <token>.');
      throw new Refusal('invalid_token', 'This is not METRICS_TOKEN.');
    }
    const { registry } = measured.instruments;
    return { status: 200, type: registry.contentType, body: await registry.metrics() };
  },
});
