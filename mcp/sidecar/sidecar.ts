/**
 * The sidecar of `agent-broker run`: a server on loopback that signs the requests of one command with the agent's key. Loopback is
 * open to every process of the machine, and by DNS rebinding to web pages. So it serves only who shows the placeholder of this run,
 * at an address of its own, and never a browser.
 */
import { chmodSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Broker, forwarding, refuse } from './forward.ts';
import { isShown, withoutPlaceholder } from './placeholder.ts';

export type Served = {
  broker: Broker;
  placeholder: string;
  /** Labels, or ids of those that have no label. */
  connections: readonly string[];
  /** The connection of git and of api.github.com, if there is one. */
  codehost: string | undefined;
  /** A Unix socket to make, for clients that send requests for any host to one. */
  socket: string | undefined;
};

export type Sidecar = {
  /** `http://127.0.0.1:<port>` */
  url: string;
  close(): void;
};

/** Where `gh` sends what it asks, over the Unix socket. */
const GITHUB_API = 'api.github.com';

/** What a request leads to. `back`: what the broker's addresses of the connection become in an answer. */
type Route = { path: string; connection: string; isGit: boolean; back: string };

/** Rejects with an error of the system when there is no port, or no socket can be made. */
export async function startSidecar(served: Served): Promise<Sidecar> {
  const { forward, close } = forwarding(served.broker);
  let host = '';
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const refusal = refusedSender(request, host, served);
    if (refusal) return void refuse(response, 403, 'not_served', refusal);
    const { isShown: inHeader, headers } = withoutPlaceholder(request.rawHeaders, served.placeholder);
    // kubectl sends no key over plain HTTP, so its address has it.
    const [, inPath, rest = ''] = /^\/~([^/?]*)(.*)$/s.exec(request.url ?? '') ?? [];
    if (!inHeader && !(inPath !== undefined && isShown(inPath, served.placeholder)))
      return void refuse(response, 401, 'wrong_placeholder', WRONG_PLACEHOLDER);
    const origin = `http://${request.headers.host}${inPath === undefined ? '' : `/~${inPath}`}`;
    const route = routeOf(inPath === undefined ? (request.url ?? '') : rest, request.headers.host, origin, served);
    if (route === undefined) return void refuse(response, 404, 'not_found', unknown(served));
    forward(request, response, {
      path: route.path,
      headers,
      authorization: (token) =>
        route.isGit
          ? ['Authorization', `Basic ${basic(`connection.${route.connection}:${token}`)}`]
          : ['X-Svc-Authorization', `Bearer ${token}`],
      back: (value) => value.replaceAll(doorOf(served.broker.url, route.connection), () => route.back),
    });
  };
  const tcp = await listen(answer, { host: '127.0.0.1', port: 0 });
  const servers = [tcp];
  const url = `http://127.0.0.1:${(tcp.address() as AddressInfo).port}`;
  host = new URL(url).host;
  if (served.socket !== undefined) {
    servers.push(await listen(answer, { path: served.socket }));
    chmodSync(served.socket, 0o600);
  }
  return {
    url,
    close: () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
      close();
    },
  };
}

function listen(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  at: { host: string; port: number } | { path: string },
): Promise<Server> {
  // An upload may take as long as the broker lets it.
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 120_000 }, answer);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => resolve(server));
  });
}

const WRONG_PLACEHOLDER =
  'Only the command of this run is served. Send the value of AGENT_BROKER_RUN_KEY, or of the tool’s own variable, where the key of the platform goes.';

/** Why a sender is not served, whatever it shows. Undefined: it may be. */
function refusedSender({ headers, socket }: IncomingMessage, host: string, { codehost }: Served): string | undefined {
  // Node's own fetch sends Sec-Fetch-Mode; only browsers say from which site.
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) return 'Browsers are not served.';
  const isUnix = socket.remoteAddress === undefined;
  const isOwn = headers.host === host || headers.host === host.replace('127.0.0.1', 'localhost');
  if (isOwn || (isUnix && codehost !== undefined && headers.host === GITHUB_API)) return undefined;
  return `The Host header has to be ${host}.`;
}

/** Undefined: nothing that this run serves. */
function routeOf(target: string, host: string | undefined, origin: string, served: Served): Route | undefined {
  const { connections, codehost } = served;
  // What the broker would understand by another path is for nobody to find out.
  if (!target.startsWith('/') || /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?]|%2f|%5c|$)/i.test(target.replace(/\?.*$/s, '')))
    return undefined;
  if (codehost !== undefined && host === GITHUB_API)
    return {
      path: `${doorPath(codehost)}${target}`,
      connection: codehost,
      isGit: false,
      back: `https://${GITHUB_API}`,
    };
  if (codehost !== undefined && target.startsWith('/git/'))
    return { path: target, connection: codehost, isGit: true, back: origin };
  const connection = connections.find((one) => /^[/?]|^$/.test(afterDoor(target, one)));
  if (connection === undefined) return undefined;
  return { path: target, connection, isGit: false, back: `${origin}${doorPath(connection)}` };
}

const doorPath = (connection: string): string => `/proxy/${encodeURIComponent(connection)}`;

/** `-`: it is not below the door. */
const afterDoor = (target: string, connection: string): string =>
  target.startsWith(doorPath(connection)) ? target.slice(doorPath(connection).length) : '-';

/** The broker's address of a connection in a header. The broker may have another name for itself than the profile has. */
function doorOf(broker: string, connection: string): RegExp {
  const path = `${new URL(broker).pathname.replace(/\/$/, '')}${doorPath(connection)}`.replace(
    /[\\^$.*+?()[\]{}|]/g,
    '\\$&',
  );
  return new RegExp(`https?://[^/\\s<>]+${path}(?=[/?#>;,\\s]|$)`, 'g');
}

const unknown = ({ connections, codehost }: Served): string =>
  `No such address here. There is: ${[...connections.map(doorPath), ...(codehost === undefined ? [] : ['/git'])].join(', ')}.`;

const basic = (pair: string): string => Buffer.from(pair).toString('base64');
