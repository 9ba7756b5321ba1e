/**
 * The SSRF guard at connection time. Checking the name beforehand is not enough: it may resolve to another address when the connection is
 * made (DNS rebinding). So the name is resolved once, here, every address is checked, the socket connects to a checked address, and the
 * peer address is checked again once connected (SS-04 to SS-07).
 */
import type { LookupAddress } from 'node:dns';
import net, { type LookupFunction, type Socket } from 'node:net';
import tls from 'node:tls';
import type { buildConnector } from 'undici';
import { addressRefusal, sameAddress } from './address.ts';
import { isThroughProxy, type OutboundProxy, openTunnel } from './outbound-proxy.ts';
import { isOwnAddress, literalAddress, type Target, type TargetRules } from './target.ts';
import { errorCode, OutboundFault } from './unreachable.ts';

/** `dns.lookup` with `{ all: true }`. */
export type Lookup = (
  hostname: string,
  options: { all: true },
  done: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

export type ConnectorOptions = {
  target: Extract<Target, { ok: true }>;
  rules: TargetRules;
  lookup: Lookup;
  /** Milliseconds for DNS, TCP and TLS together. */
  timeoutMs: number;
  /** PEM certificates to trust instead of the system's. */
  ca?: string | undefined;
  /** Sockets that are being connected, so that `close` can destroy them. */
  connecting: Set<Socket>;
  /** The proxy for targets that the operator did not list. */
  proxy?: OutboundProxy | undefined;
};

/** Returns why this address is refused for this target, in one word; undefined when it is allowed. */
function connectionRefusal(ip: string, options: Pick<ConnectorOptions, 'target' | 'rules'>): string | undefined {
  const { target, rules } = options;
  if (isOwnAddress(rules.own, ip, target.port)) return 'own_address';
  return addressRefusal(ip, target.listed);
}

/**
 * Creates undici's connector for one origin. HTTP/1.1 only; TLS verifies the name of the origin, never the address, and resumes the last
 * session. All errors are `OutboundFault`s.
 */
export function makeConnector(options: ConnectorOptions): buildConnector.connector {
  const { proxy, target } = options;
  return isThroughProxy(proxy, target) ? proxyConnector(options, proxy) : directConnector(options);
}

function directConnector(options: ConnectorOptions): buildConnector.connector {
  let session: Buffer | undefined;
  return (request, done) => {
    const { hostname, protocol } = request;
    const checked: string[] = [];
    const literal = literalAddress(hostname);
    if (literal !== undefined) {
      // Node does not call `lookup` for IP literals.
      const refused = connectionRefusal(literal, options);
      if (refused !== undefined) {
        process.nextTick(done, new OutboundFault('address_refused', refused), null);
        return;
      }
      checked.push(literal);
    }
    const dial = { host: hostname, port: options.target.port, lookup: checkedLookup(options, checked) };
    const secure = protocol === 'https:';
    const socket = secure
      ? dialTls(dial, options, literal === undefined ? hostname : undefined, session)
      : net.connect(dial);
    options.connecting.add(socket);
    let isTcpConnected = false;
    let settled = false;
    const settle = (error?: unknown) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      options.connecting.delete(socket);
      if (error === undefined) done(null, socket);
      else done(faultOf(error, isTcpConnected), null);
    };
    const timer = setTimeout(() => socket.destroy(new OutboundFault('timeout', 'connect')), options.timeoutMs);
    socket.on('error', settle);
    socket.once('close', () => settle(new OutboundFault('connect_failed', 'closed')));
    // Before the TLS handshake: the ClientHello already names the host.
    socket.prependOnceListener('connect', () => {
      isTcpConnected = true;
      const peer = socket.remoteAddress;
      const refused = peer === undefined ? 'unknown' : peerRefusal(peer, checked, options);
      if (refused !== undefined) socket.destroy(new OutboundFault('address_refused', refused));
      else if (!secure) settle();
    });
    if (secure) {
      socket.once('secureConnect', () => settle());
      socket.on('session', (latest: Buffer) => {
        session = latest;
      });
    }
  };
}

/**
 * Timeout of the local DNS lookup: where only the proxy can resolve internet names, this machine may have no resolver and would wait long.
 */
const LOCAL_LOOKUP_MS = 1_000;

/**
 * Connects through a proxy. The proxy resolves the name, so it decides which address is connected to. Names that this machine resolves too
 * are checked here first, so that the proxy is not asked for internal names.
 */
function proxyConnector(options: ConnectorOptions, proxy: OutboundProxy): buildConnector.connector {
  let session: Buffer | undefined;
  return ({ hostname, protocol }, done) => {
    const literal = literalAddress(hostname);
    let open: Socket | undefined;
    let settled = false;
    const settle = (fault: OutboundFault | undefined, socket?: Socket) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      clearTimeout(patience);
      if (open) options.connecting.delete(open);
      if (socket !== undefined) return done(null, socket);
      open?.destroy();
      done(fault ?? new OutboundFault('connect_failed'), null);
    };
    const timer = setTimeout(() => settle(new OutboundFault('timeout', 'connect')), options.timeoutMs);
    const begin = () => {
      clearTimeout(patience);
      if (settled || open) return;
      const tunnel = openTunnel(proxy, options.target, (fault) => {
        if (fault !== undefined || protocol !== 'https:') return settle(fault, fault ? undefined : tunnel);
        const secure = dialTls({ socket: tunnel }, options, literal === undefined ? hostname : undefined, session);
        secure.once('error', (error) => settle(faultOf(error, true)));
        secure.once('close', () => settle(new OutboundFault('tls_failed', 'closed')));
        secure.once('secureConnect', () => settle(undefined, secure));
        secure.on('session', (latest: Buffer) => {
          session = latest;
        });
      });
      open = tunnel;
      options.connecting.add(tunnel);
      // `close` may destroy the socket at any time; without a listener its error would be thrown.
      tunnel.on('error', () => {}).once('close', () => settle(new OutboundFault('connect_failed', 'closed')));
    };
    const patience = setTimeout(begin, literal === undefined ? LOCAL_LOOKUP_MS : 0);
    // A literal address was checked with the target.
    if (literal !== undefined) return;
    options.lookup(hostname, { all: true }, (error, addresses) => {
      const refused = error ? undefined : firstRefusal(addresses, options);
      if (refused !== undefined) settle(new OutboundFault('address_refused', refused));
      else begin();
    });
  };
}

const firstRefusal = (addresses: readonly LookupAddress[], options: ConnectorOptions): string | undefined =>
  addresses.map(({ address }) => connectionRefusal(address, options)).find((refused) => refused !== undefined);

type Dial = { host: string; port: number; lookup: LookupFunction };

function dialTls(
  to: Dial | { socket: Socket },
  options: ConnectorOptions,
  name: string | undefined,
  session: Buffer | undefined,
) {
  return tls.connect({
    ...to,
    ALPNProtocols: ['http/1.1'],
    // Overrides NODE_TLS_REJECT_UNAUTHORIZED: the credential must not reach another server.
    rejectUnauthorized: true,
    // RFC 6066 §3: SNI carries a host name, never an address. Node sends none by default.
    ...(name === undefined ? {} : { servername: name }),
    ...(session === undefined ? {} : { session }),
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
}

/** Returns why the peer is refused: it must be an address checked for this connection, and still be allowed. */
export function peerRefusal(
  peer: string,
  checked: readonly string[],
  options: Pick<ConnectorOptions, 'target' | 'rules'>,
): string | undefined {
  if (!checked.some((ip) => sameAddress(ip, peer))) return 'not_resolved';
  return connectionRefusal(peer, options);
}

function checkedLookup(options: ConnectorOptions, checked: string[]): LookupFunction {
  return (hostname, wanted, done) => {
    options.lookup(hostname, { all: true }, (error, addresses) => {
      const first = addresses?.[0];
      if (error || first === undefined) return done(new OutboundFault('dns_failed', errorCode(error)), '', 0);
      const refused = firstRefusal(addresses, options);
      if (refused !== undefined) return done(new OutboundFault('address_refused', refused), '', 0);
      checked.push(...addresses.map(({ address }) => address));
      if (wanted.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

function faultOf(error: unknown, isTcpConnected: boolean): OutboundFault {
  if (error instanceof OutboundFault) return error;
  return new OutboundFault(isTcpConnected ? 'tls_failed' : 'connect_failed', errorCode(error));
}
