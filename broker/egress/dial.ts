/** Opens a plain guarded connection, for protocols that a library implements: mail. */
import type { Socket } from 'node:net';
import { type Lookup, makeConnector } from './connector.ts';
import type { OutboundProxy } from './outbound-proxy.ts';
import { checkHost, type TargetRules } from './target.ts';
import { type Unreachable, unreachable, unreachableFrom } from './unreachable.ts';

/** `ports`: allowed on the public internet; any other port has to be listed by the operator. */
export type DialTo = { host: string; port: number; ports: readonly number[] };

export type DialOptions = {
  rules: TargetRules;
  lookup: Lookup;
  timeoutMs: number;
  /** Sockets that are being connected, so that `close` can destroy them. */
  connecting: Set<Socket>;
  proxy?: OutboundProxy | undefined;
};

/** Connects once. The name is resolved once, its addresses are checked, and the peer must be one of them. Never rejects. */
export function dial({ host, port, ports }: DialTo, options: DialOptions): Promise<Socket | Unreachable> {
  const target = checkHost({ host, port }, options.rules, new Set(ports));
  if (!target.ok) return Promise.resolve(unreachable('address_refused', false, target.refused));
  const connect = makeConnector({ ...options, target });
  return new Promise((resolve) => {
    connect({ hostname: host, host, protocol: 'tcp:', port: `${port}` }, (error, socket) =>
      resolve(error === null ? (socket as Socket) : unreachableFrom(error, false)),
    );
  });
}
