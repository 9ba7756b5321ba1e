/**
 * The sidecar of `agent-broker run`: a server on loopback that signs the requests of one command with the agent's key. Loopback is
 * open to every process of the machine, and by DNS rebinding to web pages. So the sidecar serves only clients with the placeholder of this
 * run, at an address of its own, and never a browser.
 */
import { chmodSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { API_SERVED, type HeldCalls, heldCalls, isApiServed } from './api-routes.ts';
import { answerAt, type Entry } from './entry.ts';
import { type Broker, forwarding } from './forward.ts';
import { GITHUB_BY_PROXY } from './git-rules.ts';
import { originOf, type PlatformAddress } from './platform-address.ts';
import type { ErrorForm } from './refusal.ts';
import {
  type Connections,
  GITHUB_API,
  gitPathOf,
  listProxyPrefixes,
  platformRoute,
  proxyConnection,
  proxyRoute,
} from './routes.ts';
import { type ConnectProxy, tunnelling } from './tunnel.ts';
import { refuseUnparsed } from './unparsed.ts';

export type Served = Connections & {
  broker: Broker;
  placeholder: string;
  /** The value of `X-Svc-Caller` on every request, for a run that is for one person; throws CallerProblem. */
  caller?: (() => string) | undefined;
  /** How many seconds a call waits for an approval, where a request does not set `X-Svc-Wait`. */
  wait?: number | undefined;
  /** By connection: the error format of its platform. */
  errors?: ReadonlyMap<string, ErrorForm>;
  /** Path of a Unix socket to listen on, for clients that send requests for any host to one socket. */
  socket: string | undefined;
  /** Ports that each serve a single connection. 0: any free port. */
  ports?: readonly { address: PlatformAddress; port: number }[];
  /** Set to serve as a proxy as well. */
  proxy?: ConnectProxy | undefined;
};

export type Sidecar = {
  /** `http://127.0.0.1:<port>` */
  url: string;
  /** The ports of `ports`, in their order. */
  ports: readonly number[];
  close(): void;
};

/** Starts the sidecar. Rejects with a system error when no port can be opened, or no socket can be made. */
export async function startSidecar(served: Served): Promise<Sidecar> {
  const { forward, close } = forwarding(served.broker);
  const parts: { close(): void }[] = [{ close }];
  const stop = () => {
    for (const part of parts) part.close();
  };
  const { placeholder, caller, wait, errors = new Map() } = served;
  const held = heldCalls();
  const answer = (entry: Entry) => answerAt(entry, { placeholder, forward, caller, wait, errors, held });
  const open = async (at: { host: string; port: number } | { path: string }): Promise<Server> => {
    const server = await listen(at);
    parts.push({
      close: () => {
        server.close();
        server.closeAllConnections();
      },
    });
    return server;
  };
  try {
    const tunnels = served.proxy && tunnelling(served.proxy, { placeholder, answer });
    if (tunnels) parts.push(tunnels);
    const serve = (server: Server, hosts: readonly string[]) => {
      const atProxyPaths = answer(proxyEntry(hosts, served, held));
      const ofGit = answer(gitEntry(served));
      server.on('request', (request, response) => {
        if (served.codehost !== undefined && gitPathOf(request.url ?? '')) ofGit(request, response);
        else if (!tunnels?.ask(request, response)) atProxyPaths(request, response);
      });
      if (tunnels) server.on('connect', tunnels.connect);
    };
    const tcp = await open({ host: LOOPBACK, port: 0 });
    serve(tcp, hostsOf(tcp));
    if (served.socket !== undefined) {
      const unix = await open({ path: served.socket });
      chmodSync(served.socket, 0o600);
      serve(unix, served.codehost === undefined ? hostsOf(tcp) : [...hostsOf(tcp), GITHUB_API]);
    }
    const ports: number[] = [];
    for (const { address, port } of served.ports ?? []) {
      const server = await open({ host: LOOPBACK, port });
      server.on('request', answer(portEntry(hostsOf(server), address)));
      ports.push((server.address() as AddressInfo).port);
    }
    return { url: `http://${hostsOf(tcp)[0]}`, ports, close: stop };
  } catch (error) {
    stop();
    throw error;
  }
}

const LOOPBACK = '127.0.0.1';

function listen(at: { host: string; port: number } | { path: string }): Promise<Server> {
  // No limit here: the broker limits how long an upload may take.
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 120_000 });
  refuseUnparsed(server);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => resolve(server));
  });
}

function hostsOf(server: Server): string[] {
  const { port } = server.address() as AddressInfo;
  return [`${LOOPBACK}:${port}`, `localhost:${port}`];
}

const proxyEntry = (hosts: readonly string[], served: Connections, held: HeldCalls): Entry => ({
  hosts,
  isShown: false,
  routeOf: (target, at) => proxyRoute(target, at, served),
  // The paths of api.github.com are GitHub's.
  isApi: (method, target, host) => host.toLowerCase() !== GITHUB_API && isApiServed(method, target, held),
  unknown: `No such address here. There is: ${listProxyPrefixes(served)}; and ${API_SERVED}.`,
  connectionOf: (target, { host }) => proxyConnection(target, host, served),
});

/** For git, whose proxy the sidecar is for the code host. */
const gitEntry = (served: Connections): Entry => ({
  hosts: [new URL(GITHUB_BY_PROXY).host],
  isShown: false,
  routeOf: (target, at) => proxyRoute(gitPathOf(target) ?? '', at, served),
  isApi: () => false,
  unknown: 'No such address of a repository.',
  connectionOf: () => served.codehost,
});

const portEntry = (hosts: readonly string[], address: PlatformAddress): Entry => ({
  hosts,
  isShown: false,
  routeOf: (target, { origin }) => platformRoute(target, origin, [address]),
  isApi: () => false,
  unknown: `There is no such address. This port leads to ${originOf(address)}, which has: ${address.path || '/'}.`,
  connectionOf: () => address.connection,
});
