/** Whoever runs the broker, as probes and monitoring show it. */
import type { IncomingMessage } from 'node:http';
import { readBearer } from '../auth/bearer.ts';
import type { Config } from '../environment/config.ts';

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'];

/**
 * Whether a request is from the same machine, or has METRICS_TOKEN as bearer. A proxy on this machine brings strangers from loopback,
 * too.
 */
export function isOperator(request: IncomingMessage, { metricsToken }: Pick<Config, 'metricsToken'>): boolean {
  const { headers, socket } = request;
  const address = socket.remoteAddress ?? '';
  const isLoopback = /^(::ffff:)?127\./.test(address) || address === '::1';
  if (isLoopback && !FORWARDED.some((name) => headers[name] !== undefined)) return true;
  const bearer = readBearer(request);
  return metricsToken !== undefined && bearer.kind === 'bearer' && metricsToken.equals(bearer.token);
}
