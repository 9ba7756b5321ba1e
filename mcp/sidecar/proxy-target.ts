/** Decides who may use the proxy of a run, and which targets belong to a granted platform. */
import type { IncomingMessage } from 'node:http';
import { isOfBrowser } from './entry.ts';
import { isShown, passwordIn } from './placeholder.ts';
import { bareHost, originOf, type PlatformAddress } from './platform-address.ts';
import type { Refusal } from './refusal.ts';

export type Target = { host: string; port: number };

/** `reason`: the reason phrase of the status line. */
export type ProxyRefusal = Refusal & { reason: string };

/** The hosts that the proxy serves. */
export type Hosts = {
  /** Addresses of granted platforms. Those without TLS do not go through the proxy: they are on this machine, for which no tool uses a proxy. */
  addresses: readonly PlatformAddress[];
  /** Whether hosts that belong to no granted platform are refused. */
  isStrict: boolean;
  /** Called once for each host that belongs to no granted platform. */
  tell?: ((line: string) => void) | undefined;
};

/** `origin`: of the granted platform; undefined when the target belongs to none and is passed through. */
export type Judged = { target: Target; origin: string | undefined };

/**
 * Returns a function that judges a request for an authority, `<host>:<port>`: of CONNECT (RFC 9112, 3.2.3), or of a target in absolute-form
 * (3.2.2) by plain HTTP. Only clients with the placeholder as the proxy's password (RFC 9110, 11.7) are served.
 */
export function judging(
  { addresses, isStrict, tell = () => {} }: Hosts,
  placeholder: string,
): (request: IncomingMessage, authority: string, kind: 'CONNECT' | 'http') => Judged | ProxyRefusal {
  const told = new Set<string>();
  const tellOnce = (host: string) => {
    if (told.has(host)) return;
    told.add(host);
    tell(`${host} is the host of no granted platform: ${isStrict ? 'refused' : 'passed through, and not governed'}.`);
  };
  return (request, authority, kind) => {
    if (isOfBrowser(request)) return BROWSER;
    const [credentials, another] = request.headersDistinct['proxy-authorization'] ?? [];
    const password = another === undefined ? passwordIn(credentials) : undefined;
    if (password?.length !== placeholder.length || !isShown(password, placeholder)) return NOT_SHOWN;
    const target = targetOf(authority, kind);
    if (target === undefined) return NO_TARGET;
    // RFC 9110, 7.2. Some clients send no Host with CONNECT, others one without the port.
    const asked = request.headersDistinct.host ?? [];
    const same = [authority, authority.replace(/:\d+$/, '')].map((one) => one.toLowerCase());
    if (asked.length > 1 || !asked.every((host) => same.includes(host.toLowerCase()))) return OTHER_HOST;
    const here = addresses.filter(({ host }) => host === target.host);
    const found = here.find(({ port }) => port === target.port && kind === 'CONNECT');
    if (found !== undefined) return { target, origin: originOf(found) };
    if (here.length > 0) return otherPort(target, here);
    tellOnce(target.host);
    return isStrict ? notGranted(target) : { target, origin: undefined };
  };
}

/** Parses an authority; undefined when it is malformed. */
function targetOf(authority: string, kind: 'CONNECT' | 'http'): Target | undefined {
  const written = kind === 'http' && !/:\d+$/.test(authority) ? `${authority}:80` : authority;
  const [, hostname = '', port = ''] = /^(\[[0-9a-f:.]+\]|[^\s:/\\@?#[\]]+):(\d{1,5})$/i.exec(written) ?? [];
  const url = URL.parse(`http://${hostname}`);
  if (url === null || hostname === '' || Number(port) < 1 || Number(port) > 65_535) return undefined;
  return { host: bareHost(url.hostname), port: Number(port) };
}

const BROWSER: ProxyRefusal = {
  ...{ status: 403, reason: 'Browsers are not served', error: 'not_served' },
  detail: 'Browsers are not served.',
};
const NOT_SHOWN: ProxyRefusal = {
  ...{ status: 407, reason: 'Proxy Authentication Required', error: 'wrong_placeholder' },
  detail: 'Only the command of this run can use this address. Use HTTPS_PROXY as it is, with its user and password.',
};
const NO_TARGET: ProxyRefusal = {
  ...{ status: 400, reason: 'Bad Request', error: 'invalid_request' },
  detail: 'The target of CONNECT has to be <host>:<port>, and that of any other method http://<host>/<path>.',
};
const OTHER_HOST: ProxyRefusal = {
  ...{ status: 403, reason: 'Host is not the target', error: 'not_served' },
  detail: 'The Host header has to be that of the target.',
};
const otherPort = ({ host }: Target, here: readonly PlatformAddress[]): ProxyRefusal => ({
  ...{ status: 403, reason: 'Not the address of the platform', error: 'not_found' },
  detail: `The platform at ${host} is at ${here.map(originOf).join(', ')}.`,
});
const notGranted = ({ host }: Target): ProxyRefusal => ({
  ...{ status: 403, reason: 'No host of a granted platform', error: 'not_found' },
  detail: `${host} is the host of no platform that this agent has a grant on, and --strict refuses others.`,
});
export const unreachable = ({ host, port }: Target, { code }: NodeJS.ErrnoException): ProxyRefusal => ({
  ...{ status: 502, reason: 'The host does not answer', error: 'unreachable' },
  detail: `${host}:${port} did not answer (${code}).`,
});

/** The header that RFC 9110, 11.7.1 requires with a 407. */
export const CHALLENGE = ['Proxy-Authenticate', 'Basic realm="agent-broker run"'] as const;
