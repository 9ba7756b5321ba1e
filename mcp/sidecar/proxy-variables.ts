/** What makes the tools of a command use the proxy of a run, and trust its authority. */
import { delimiter } from 'node:path';
import type { Environment } from './environment.ts';

/** What Go, Ruby, OpenSSL and many others look for. */
const USUAL_ROOTS = 'SSL_CERT_FILE';
/** Files of roots in place of the system's. */
const ROOTS = [
  USUAL_ROOTS,
  ...[
    'REQUESTS_CA_BUNDLE',
    'HTTPLIB2_CA_CERTS',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'AWS_CA_BUNDLE',
    'PERL_LWP_SSL_CA_FILE',
  ],
];
/** A file of roots beside those that Node has. */
const MORE_ROOTS = 'NODE_EXTRA_CA_CERTS';
/** Ruby's Net::HTTP looks for `http_proxy` alone, whatever it asks for. */
const OURS = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];
const PROXIES = [...OURS, 'ALL_PROXY', 'all_proxy'];
const DIRECT = 'localhost,127.0.0.1,::1';

type Run = {
  /** The sidecar's address. */
  url: string;
  placeholder: string;
  folder: string;
  /** In PEM, as the roots are. */
  certificate: string;
  systemRoots: string;
  /** The text of the person's settings of wget. */
  wgetSettings: string;
  /** Reads a file of roots that the parent names. */
  read: (path: string) => string;
};

/**
 * Variables, and the files that they name, by name in the folder. The roots that a variable of the parent names stay, and else the system's:
 * what is not opened is verified as before.
 */
export function proxyVariables(
  parent: Environment,
  { url, placeholder, folder, certificate, systemRoots, wgetSettings, read }: Run,
): { environment: Record<string, string>; files: Record<string, string> } {
  const proxy = new URL(url);
  proxy.username = 'run';
  proxy.password = placeholder;
  const address = proxy.href.replace(/\/$/, '');
  const environment: Record<string, string> = {
    ...Object.fromEntries(OURS.map((name) => [name, address])),
    ...{ NO_PROXY: DIRECT, no_proxy: DIRECT },
    NODE_USE_ENV_PROXY: '1',
  };
  const files: Record<string, string> = {};
  /** `own`: the file that was named before. Answers the path of the new one. */
  const rootsFor = (name: string, own: string | undefined): string => {
    const roots = own ? read(own) : name === MORE_ROOTS ? '' : systemRoots;
    const file = own || name === MORE_ROOTS ? `${name}.pem` : 'roots.pem';
    files[file] = `${endedLine(roots)}${certificate}`;
    return `${folder}/${file}`;
  };
  for (const name of [...ROOTS, MORE_ROOTS]) environment[name] = rootsFor(name, parent[name]);
  const usual = environment[USUAL_ROOTS];
  // An empty folder is the one that PHP has: it reads both.
  environment.PHP_INI_SCAN_DIR = `${parent.PHP_INI_SCAN_DIR ?? ''}${delimiter}${folder}/php`;
  files['php/agent-broker-run.ini'] = `curl.cainfo="${usual}"\nopenssl.cafile="${usual}"\n`;
  environment.WGETRC = `${folder}/wgetrc`;
  files.wgetrc = `${endedLine(wgetSettings)}ca_certificate = ${rootsFor('WGETRC', wgetRoots(wgetSettings))}\n`;
  return { environment, files };
}

const endedLine = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

/** The last file of roots that settings of wget name. Names are written with dashes, underscores or neither, in any case (its manual, "Wgetrc Syntax"). */
const wgetRoots = (settings: string): string | undefined =>
  [...settings.matchAll(/^[ \t]*ca[-_]?certificate[ \t]*=[ \t]*(.*\S)/gim)].at(-1)?.[1];

/** The variable by which all would have gone through another proxy. */
export const otherProxyIn = (parent: Environment): string | undefined => PROXIES.find((name) => parent[name]);
