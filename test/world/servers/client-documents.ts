/** A client's site: its metadata document and its keys, over TLS, at a name that only the broker of this world resolves. */
import { createServer } from 'node:https';
import { certificateFor } from '../../egress/certificate.ts';
import { listenOnLoopback } from '../listen.ts';
import { resolveLocally } from '../resolve-locally.ts';
import type { World } from '../world.ts';

const HOST = 'app.example';

export type ClientSite = {
  /** `https://app.example:<port>` */
  origin: string;
  /** JSON documents by path; other paths are a 404. A number is answered as a status without a document, and null not at all. */
  documents: Map<string, unknown>;
  /** Requested paths, in order. */
  asked: string[];
};

/** Starts the site, and makes this world's broker resolve it. To be called before the broker's authorization server is first used. */
export async function startClientSite(world: World): Promise<ClientSite> {
  const { key, cert } = certificateFor(HOST);
  const documents = new Map<string, unknown>();
  const asked: string[] = [];
  const server = createServer({ key, cert }, (request, response) => {
    asked.push(request.url!);
    const document = documents.get(request.url!);
    if (document === null) return void request.socket.destroy();
    const status = typeof document === 'number' ? document : document === undefined ? 404 : 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? {}));
  });
  const port = await listenOnLoopback(server);
  await resolveLocally(world, HOST, port, cert);
  return { origin: `https://${HOST}:${port}`, documents, asked };
}
