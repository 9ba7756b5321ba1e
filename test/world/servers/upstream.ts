/** A small platform on loopback that records, byte for byte, what it receives. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterFile } from '../runner/after-file.ts';

export type Seen = {
  method: string;
  /** The unchanged request target. */
  target: string;
  rawHeaders: string[];
  headers: IncomingMessage['headers'];
  body: string;
};

export type Upstream = {
  /** `http://127.0.0.1:port`, or with a certificate `https://localhost:port`. */
  url: string;
  /** Its host and port, for AGENT_BROKER_ALLOW_PRIVATE. */
  address: string;
  seen: Seen[];
  /** Overrides the answer; undefined restores the echo. */
  answer: ((request: IncomingMessage, response: ServerResponse, body: string) => void) | undefined;
  close(): Promise<void>;
  /** Refuses connections until it is resumed at the same address. */
  pause(): Promise<void>;
  resume(): Promise<void>;
};

/**
 * Starts the platform; it ends with the test file. By default it answers 200 with `{method, target, body}`, and never the headers.
 *
 * @param certificate for `localhost`, or for `host`, of a server with TLS
 * @param host another loopback address
 */
export async function startUpstream(certificate?: { key: string; cert: string }, host?: string): Promise<Upstream> {
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The client broke off the request.
      return;
    }
    const body = Buffer.concat(chunks).toString('utf8');
    const { method = '', url = '', rawHeaders, headers } = request;
    upstream.seen.push({ method, target: url, rawHeaders, headers, body });
    if (upstream.answer) return upstream.answer(request, response, body);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ method, target: url, body: body === '' ? null : body }));
  };
  const server = certificate ? createTlsServer(certificate, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, host ?? '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const name = host ?? (certificate ? 'localhost' : '127.0.0.1');
  const upstream: Upstream = {
    url: `${certificate ? 'https' : 'http'}://${name}:${port}`,
    address: `${name}:${port}`,
    seen: [],
    answer: undefined,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
    pause: () => upstream.close(),
    resume: () => new Promise<void>((resolve) => server.listen(port, host ?? '127.0.0.1', resolve)),
  };
  afterFile(upstream.close);
  return upstream;
}
