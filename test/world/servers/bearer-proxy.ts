/** A proxy to a broker for programs that cannot send a token: it adds one, and forwards everything else unchanged. */
import { request as ask, createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listenOnLoopback } from '../listen.ts';

/** Returns its address. It ends with the test file. `seen`: gets the body of each request before it is forwarded. */
export async function startBearerProxy(
  baseUrl: string,
  token: () => Promise<string>,
  seen: (body: string) => Promise<void> = async () => {},
): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
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
  const address = `http://localhost:${await listenOnLoopback(server)}`;
  return address;
}
