/** The outbound proxy (OUTBOUND_PROXY): CONNECT (RFC 9110, 9.3.6), for TLS and for mail. */
import net, { type Socket } from 'node:net';
import tls from 'node:tls';
import { hostPortText, literalAddress, type Target } from './target.ts';
import { errorCode, OutboundFault } from './unreachable.ts';

export type OutboundProxy = { isTls: boolean; host: string; port: number; authorization: string | undefined };

type Reached = Extract<Target, { ok: true }>;

/** Limit of the proxy's answer: a status line and some headers. */
const MAX_BYTES = 16 * 1024;
const HEAD_END = '\r\n\r\n';

/**
 * Parses the proxy's URL.
 *
 * @param url `http://host:port` or `https://host:port`, with user and password or without
 */
export function readOutboundProxy(url: string): OutboundProxy {
  const { protocol, hostname, port, username, password } = new URL(url);
  const isTls = protocol === 'https:';
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    isTls,
    host: literalAddress(hostname) ?? hostname,
    port: Number(port) || (isTls ? 443 : 80),
    authorization: pair === ':' ? undefined : `Basic ${Buffer.from(pair).toString('base64')}`,
  };
}

/** Whether the target is reached through the proxy; targets that the operator listed are on internal networks. */
export const isThroughProxy = (proxy: OutboundProxy | undefined, target: Reached): proxy is OutboundProxy =>
  proxy !== undefined && target.listed === 'no';

/**
 * Connects to the proxy and requests a connection to the target by name; the proxy resolves it. `done` is called once: without a fault when
 * the returned socket is connected to the target.
 */
export function openTunnel(proxy: OutboundProxy, target: Reached, done: (fault?: OutboundFault) => void): Socket {
  const { host, port, isTls } = proxy;
  const named = net.isIP(host) === 0 ? { servername: host } : {};
  const socket = isTls
    ? tls.connect({ host, port, ...named, ALPNProtocols: ['http/1.1'], rejectUnauthorized: true })
    : net.connect({ host, port });
  let head = Buffer.alloc(0);
  const end = (fault?: OutboundFault) => {
    socket.off('readable', read).off('error', failed).off('close', closed);
    done(fault);
  };
  const failed = (error: Error) => end(error instanceof OutboundFault ? error : proxyUnreachable(errorCode(error)));
  const closed = () => end(proxyUnreachable('closed'));
  const read = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
      head = Buffer.concat([head, chunk]);
      const at = head.indexOf(HEAD_END);
      if (at < 0 && head.length <= MAX_BYTES) continue;
      const [, status] = /^HTTP\/1\.[01] (\d{3})(?: |\r)/.exec(head.toString('latin1')) ?? [];
      if (at < 0 || !status?.startsWith('2')) return end(new OutboundFault('proxy_refused', status ?? 'not_http'));
      // Data of a protocol in which the server speaks first.
      const rest = head.subarray(at + HEAD_END.length);
      if (rest.length > 0) socket.unshift(rest);
      return end();
    }
  };
  socket.on('error', failed).on('close', closed).on('readable', read);
  socket.once(isTls ? 'secureConnect' : 'connect', () => {
    const to = hostPortText(target);
    const credentials = proxy.authorization === undefined ? '' : `Proxy-Authorization: ${proxy.authorization}\r\n`;
    socket.write(`CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n${credentials}\r\n`);
  });
  return socket;
}

const proxyUnreachable = (reason: string | undefined) => new OutboundFault('proxy_unreachable', reason);
