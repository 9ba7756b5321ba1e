/** What makes the tools of a command use the proxy of a run, and trust its authority. */
import type { Environment } from './environment.ts';

/** Files of roots in place of the system's. */
const ROOTS = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'AWS_CA_BUNDLE'];
/** A file of roots beside those that Node has. */
const MORE_ROOTS = 'NODE_EXTRA_CA_CERTS';
const PROXIES = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'];
const DIRECT = 'localhost,127.0.0.1,::1';

type Run = {
  /** The sidecar's address. */
  url: string;
  placeholder: string;
  folder: string;
  /** In PEM, as the roots are. */
  certificate: string;
  systemRoots: string;
  /** Reads a file of roots that the parent names. */
  read: (path: string) => string;
};

/**
 * Variables, and the files that they name, by name in the folder. The roots that a variable of the parent names stay, and else the system's:
 * what is not opened is verified as before.
 */
export function proxyVariables(
  parent: Environment,
  { url, placeholder, folder, certificate, systemRoots, read }: Run,
): { environment: Record<string, string>; files: Record<string, string> } {
  const proxy = new URL(url);
  proxy.username = 'run';
  proxy.password = placeholder;
  const address = proxy.href.replace(/\/$/, '');
  const environment: Record<string, string> = {
    ...{ HTTPS_PROXY: address, https_proxy: address, NO_PROXY: DIRECT, no_proxy: DIRECT },
    NODE_USE_ENV_PROXY: '1',
  };
  const files: Record<string, string> = {};
  for (const name of [...ROOTS, MORE_ROOTS]) {
    const own = parent[name] ? read(parent[name]) : undefined;
    const roots = own ?? (name === MORE_ROOTS ? '' : systemRoots);
    const file = own !== undefined || name === MORE_ROOTS ? `${name}.pem` : 'roots.pem';
    files[file] = `${roots.replace(/\n?$/, roots === '' ? '' : '\n')}${certificate}`;
    environment[name] = `${folder}/${file}`;
  }
  return { environment, files };
}

/** The variable by which all would have gone through another proxy. */
export const otherProxyIn = (parent: Environment): string | undefined => PROXIES.find((name) => parent[name]);
