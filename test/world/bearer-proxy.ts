/** A proxy to a broker for programs that cannot send a token: it adds one, and forwards everything else unchanged. */
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterFile } from './after-file.ts';

/** Returns its address. It ends with the test file. `seen`: gets the body of each request before it is forwarded. */
export async function startBearerProxy(
  baseUrl: string,
  token: () => Promise<string>,
  seen: (body: string) => Promise<void> = async () => {},
): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    await seen(body.toString('utf8'));
    const own = `http://${request.headers.host}`;
    const headers = { ...request.headers, authorization: `Bearer ${await token()}` };
    // Pages of the proxy's own origin count as pages of the broker.
    if (headers.origin === own && own === address) headers.origin = baseUrl;
    const onward = ask({ hostname, port, method: request.method, path: request.url, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.rawHeaders);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    onward.end(body);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = `http://localhost:${(server.address() as AddressInfo).port}`;
  afterFile(() => {
    server.closeAllConnections();
    server.close();
  });
  return address;
}
