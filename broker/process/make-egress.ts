/** Builds the egress for each purpose: platforms, the public internet, the identity provider, the telemetry collector. */
import type { Broker } from '../broker.ts';
import { makeOutbound, type Outbound, type OutboundOptions } from '../egress/dispatcher.ts';
import { type OutboundProxy, readOutboundProxy } from '../egress/outbound-proxy.ts';
import type { Config } from '../environment/config.ts';
import type { OidcConfig } from '../environment/oidc.ts';
import type { Log } from '../log/log.ts';
import { watchOutage } from '../outage.ts';
import type { OtelConfig } from '../telemetry/open-telemetry.ts';

type Settings = {
  config: Config;
  /** The broker's own addresses, which it must never call. */
  own: readonly string[];
};

/** `allowPrivate`: in addition to those of the configuration. */
export function makeEgress({
  config,
  own,
  log,
  allowPrivate = [],
}: Settings & { log: Log; allowPrivate?: readonly string[] }): Pick<
  Broker,
  'outbound' | 'publicOutbound' | 'providerOutbound'
> {
  const proxy = proxyOf(config);
  return {
    outbound: makeOutbound({
      proxy,
      allowPrivate: [...config.allowPrivate, ...allowPrivate],
      own,
      watch: (origin) =>
        watchOutage(log, {
          failed: 'a platform does not answer',
          worked: 'a platform answers again',
          about: { origin },
          level: 'warn',
        }),
    }),
    publicOutbound: makeOutbound({ proxy, allowPrivate: [], own, connectionsPerOrigin: 4, maxOrigins: 64 }),
    providerOutbound: config.oidc && makeOutbound(providerRules(config.oidc, { config, own })),
  };
}

/** A provider on this machine may be called for signing in, but not by calls to platforms. */
function providerRules(oidc: OidcConfig, { config, own }: Settings): OutboundOptions {
  const at = oidc.onLoopback ? [hostPort(new URL(oidc.issuer))] : [];
  return { proxy: proxyOf(config), allowPrivate: [...config.allowPrivate, ...at], own };
}

/**
 * A collector may have a private address, because the operator configured it. With a proxy, an https collector is reached through the proxy, unless it is
 * listed as private.
 */
export function egressToCollector({ traces, metrics }: OtelConfig, { config, own }: Settings): Outbound {
  const isBehindProxy = (url: URL) =>
    config.outboundProxy !== undefined && url.protocol === 'https:' && !config.allowPrivate.includes(hostPort(url));
  const named = [traces, metrics].filter((url) => url !== undefined);
  const direct = named.filter((url) => !isBehindProxy(url)).map(hostPort);
  // Collectors usually listen on 4318, which is not an allowed port of platforms.
  const otherPorts = named.filter(isBehindProxy).map(hostPort);
  return makeOutbound({ proxy: proxyOf(config), allowPrivate: direct, otherPorts, own, maxOrigins: 2 });
}

const hostPort = ({ hostname, port, protocol }: URL): string =>
  `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;

const proxyOf = ({ outboundProxy }: Config): OutboundProxy | undefined =>
  outboundProxy && readOutboundProxy(outboundProxy.reveal());
