/** Serves a request handler on a port of its own. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterFile } from './after-file.ts';

/** Returns its address; it ends with the test file. */
export async function serveHandler(handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  afterFile(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
