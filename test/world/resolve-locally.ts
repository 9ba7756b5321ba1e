/** Servers of a test at public names, which only the broker of that test resolves. */
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import type { World } from './world.ts';

/** Outgoing requests to `host`, which leads to this port of 127.0.0.1. */
export const outboundTo = (host: string, port: number, ca: string) =>
  makeOutbound({
    allowPrivate: [`${host}:${port}`],
    ca,
    lookup: ((_name: string, _options: unknown, found: (...one: unknown[]) => void) =>
      found(null, [{ address: '127.0.0.1', family: 4 }])) as never,
  });

/** Makes this world's broker resolve `host`. */
export async function resolveLocally(world: World, host: string, port: number, ca: string): Promise<void> {
  await world.running.broker.publicOutbound.close();
  Object.assign(world.running.broker, { publicOutbound: outboundTo(host, port, ca) });
}
