import { createServer, type Server as HttpServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { afterFile } from './runner/after-file.ts';

/** Starts a server on a free port of 127.0.0.1 and returns the port. The server and its connections are closed after the test file. */
export async function listenOnLoopback(server: Server | HttpServer): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  afterFile(() => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Serves a request handler, and returns its address. */
export const serveHandler = async (handle: RequestListener): Promise<string> =>
  `http://127.0.0.1:${await listenOnLoopback(createServer(handle))}`;
