/**
 * The guard on the connection itself. A check of the name beforehand is not enough: what it resolves to may change
 * between the check and the call. So the name is resolved once, here, every address is judged, the connection goes to
 * one of the judged addresses, and the far end is judged again once it stands (SS-04 to SS-07).
 */
import type { LookupAddress } from 'node:dns';
import net, { type LookupFunction, type Socket } from 'node:net';
import tls from 'node:tls';
import type { buildConnector } from 'undici';
import { addressRefusal, sameAddress } from './address.ts';
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
  /** Milliseconds for resolving, TCP and TLS together. */
  timeoutMs: number;
  /** PEM certificates to trust instead of the system's. */
  ca?: string | undefined;
  /** Holds the sockets that are being connected, so that whoever closes can end them. */
  connecting: Set<Socket>;
};

/** Why this address is refused for this target, in one word; undefined when it is not. */
export function connectionRefusal(ip: string, options: Pick<ConnectorOptions, 'target' | 'rules'>): string | undefined {
  const { target, rules } = options;
  if (isOwnAddress(rules.own, ip, target.port)) return 'own_address';
  return addressRefusal(ip, target.listed);
}

/**
 * Makes the connector of one origin, for undici. HTTP/1.1 only; TLS verifies the name of the origin, never the address,
 * and resumes the last session. All its errors are `OutboundFault`s.
 */
export function makeConnector(options: ConnectorOptions): buildConnector.connector {
  let session: Buffer | undefined;
  return (request, done) => {
    const { hostname, protocol } = request;
    const judged: string[] = [];
    const literal = literalAddress(hostname);
    if (literal !== undefined) {
      // Node never asks the lookup for these.
      const refused = connectionRefusal(literal, options);
      if (refused !== undefined) {
        process.nextTick(done, new OutboundFault('address_refused', refused), null);
        return;
      }
      judged.push(literal);
    }
    const dial = { host: hostname, port: options.target.port, lookup: judgedLookup(options, judged) };
    const secure = protocol === 'https:';
    const socket = secure ? dialTls(dial, options, literal === undefined, session) : net.connect(dial);
    options.connecting.add(socket);
    let overTcp = false;
    let settled = false;
    const settle = (error?: unknown) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      options.connecting.delete(socket);
      if (error === undefined) done(null, socket);
      else done(faultOf(error, overTcp), null);
    };
    const timer = setTimeout(() => socket.destroy(new OutboundFault('timeout', 'connect')), options.timeoutMs);
    socket.on('error', settle);
    socket.once('close', () => settle(new OutboundFault('connect_failed', 'closed')));
    // Before TLS begins: its first message already names the host.
    socket.prependOnceListener('connect', () => {
      overTcp = true;
      const far = socket.remoteAddress;
      const refused = far === undefined ? 'unknown' : farEndRefusal(far, judged, options);
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

type Dial = { host: string; port: number; lookup: LookupFunction };

function dialTls(dial: Dial, options: ConnectorOptions, isName: boolean, session: Buffer | undefined) {
  return tls.connect({
    ...dial,
    ALPNProtocols: ['http/1.1'],
    // RFC 6066 §3: the server is told the name, never an address. Node tells it nothing by itself.
    ...(isName ? { servername: dial.host } : {}),
    ...(session === undefined ? {} : { session }),
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
}

/** The far end must be an address that was judged for this very connection, and still be allowed. */
export function farEndRefusal(
  far: string,
  judged: readonly string[],
  options: Pick<ConnectorOptions, 'target' | 'rules'>,
): string | undefined {
  if (!judged.some((ip) => sameAddress(ip, far))) return 'not_resolved';
  return connectionRefusal(far, options);
}

function judgedLookup(options: ConnectorOptions, judged: string[]): LookupFunction {
  return (hostname, wanted, done) => {
    options.lookup(hostname, { all: true }, (error, addresses) => {
      const first = addresses?.[0];
      if (error || first === undefined) return done(new OutboundFault('dns_failed', errorCode(error)), '', 0);
      for (const { address } of addresses) {
        const refused = connectionRefusal(address, options);
        if (refused !== undefined) return done(new OutboundFault('address_refused', refused), '', 0);
        judged.push(address);
      }
      if (wanted.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

function faultOf(error: unknown, overTcp: boolean): OutboundFault {
  if (error instanceof OutboundFault) return error;
  return new OutboundFault(overTcp ? 'tls_failed' : 'connect_failed', errorCode(error));
}
