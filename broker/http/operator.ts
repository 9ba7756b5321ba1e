/** Detects the operator of the broker, for probes and monitoring. */
import type { IncomingMessage } from 'node:http';
import { readBearer } from '../auth/bearer.ts';
import type { Config } from '../environment/config.ts';

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'];

/**
 * Whether a request comes from the same machine, or has METRICS_TOKEN as bearer. A request with forwarding headers does not count as local, since a
 * proxy on this machine forwards strangers from loopback.
 */
export function isOperator(request: IncomingMessage, { metricsToken }: Pick<Config, 'metricsToken'>): boolean {
  const { headers, socket } = request;
  const address = socket.remoteAddress ?? '';
  const isLoopback = /^(::ffff:)?127\./.test(address) || address === '::1';
  if (isLoopback && !FORWARDED.some((name) => headers[name] !== undefined)) return true;
  const bearer = readBearer(request);
  return metricsToken !== undefined && bearer.kind === 'bearer' && metricsToken.equals(bearer.token);
}
