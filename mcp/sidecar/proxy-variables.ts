/** Environment variables that make the tools of a command use the proxy of a run and trust its certificate authority. */
import { delimiter } from 'node:path';
import type { Environment } from './environment.ts';

/** The file of root certificates that Go, Ruby, OpenSSL and many others read. */
const ROOTS_VARIABLE = 'SSL_CERT_FILE';
/** Variables that name a file of roots which replaces the system's, or that of the tool. */
const ROOTS = [
  ROOTS_VARIABLE,
  ...['REQUESTS_CA_BUNDLE', 'HTTPLIB2_CA_CERTS', 'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE', 'CURL_CA_BUNDLE'],
  ...['GIT_SSL_CAINFO', 'AWS_CA_BUNDLE', 'PERL_LWP_SSL_CA_FILE', 'HEX_CACERTS_PATH'],
];
/**
 * Variables of tools that otherwise read the file of one of the above, or have roots of their own. Set only where the parent sets them, because they would also
 * replace the roots that a file of settings of the tool names.
 */
const ROOTS_IF_SET = [
  ...['PIP_CERT', 'NIX_SSL_CERT_FILE', 'CARGO_HTTP_CAINFO', 'BUNDLE_SSL_CA_CERT', 'COMPOSER_CAFILE'],
  ...['JULIA_SSL_CA_ROOTS_PATH', 'npm_config_cafile', 'NPM_CONFIG_CAFILE', 'YARN_HTTPS_CA_FILE_PATH'],
];
/** Variables that name a file of roots in addition to those built into Node or Deno. */
const MORE_ROOTS = ['NODE_EXTRA_CA_CERTS', 'DENO_CERT'];
/** Ruby's Net::HTTP reads only `http_proxy`, for https addresses, too. */
const OURS = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];
const PROXIES = [...OURS, 'ALL_PROXY', 'all_proxy'];
const DIRECT = 'localhost,127.0.0.1,::1';

type Run = {
  /** The sidecar's address. */
  url: string;
  placeholder: string;
  folder: string;
  /** The authority's certificate in PEM, as the roots are. */
  certificate: string;
  systemRoots: string;
  /** The text of the user's settings of wget. */
  wgetSettings: string;
  /** Reads a file of roots that the parent names. */
  read: (path: string) => string;
};

/**
 * Returns variables, and the files that they name, by name in the folder. The roots that a variable of the parent names are kept, otherwise the system's:
 * connections that the proxy does not open are verified as before.
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
  /** Writes a file of roots with the authority's certificate. `own`: the file that the variable named before. Returns the path of the new file. */
  const rootsFor = (name: string, own: string | undefined): string => {
    const [file, roots] = own
      ? [`${name}.pem`, read(own)]
      : MORE_ROOTS.includes(name)
        ? ['authority.pem', '']
        : ['roots.pem', systemRoots];
    files[file] = `${endedLine(roots)}${certificate}`;
    return `${folder}/${file}`;
  };
  for (const name of [...ROOTS, ...MORE_ROOTS, ...ROOTS_IF_SET.filter((one) => parent[one])])
    environment[name] = rootsFor(name, parent[name]);
  const usual = environment[ROOTS_VARIABLE];
  // An empty entry is PHP's built-in folder: PHP then reads both folders.
  environment.PHP_INI_SCAN_DIR = `${parent.PHP_INI_SCAN_DIR ?? ''}${delimiter}${folder}/php`;
  files['php/agent-broker-run.ini'] = `curl.cainfo="${usual}"\nopenssl.cafile="${usual}"\n`;
  environment.WGETRC = `${folder}/wgetrc`;
  files.wgetrc = `${endedLine(wgetSettings)}ca_certificate = ${rootsFor('WGETRC', wgetRoots(wgetSettings))}\n`;
  return { environment, files };
}

const endedLine = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

/**
 * Returns the last file of roots that settings of wget name. Names are written with dashes, underscores or neither, in any case (its manual, "Wgetrc
 * Syntax").
 */
const wgetRoots = (settings: string): string | undefined =>
  [...settings.matchAll(/^[ \t]*ca[-_]?certificate[ \t]*=[ \t]*(.*\S)/gim)].at(-1)?.[1];

/** Returns the parent's variable that already sets another proxy, if there is one. */
export const otherProxyIn = (parent: Environment): string | undefined => PROXIES.find((name) => parent[name]);
