/** The proxy of `agent-broker run --proxy`, and the ports of `--port`. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import type { Environment, Granted } from '../../mcp/sidecar/environment.ts';
import { originOf, type PlatformAddress } from '../../mcp/sidecar/platform-address.ts';
import { otherProxyIn, proxyVariables } from '../../mcp/sidecar/proxy-variables.ts';
import type { ConnectProxy } from '../../mcp/sidecar/tunnel.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';

/** Creates the proxy. Throws CommandFailed where there is no address that a proxy could serve, or where another proxy would be bypassed. */
export async function makeProxy(
  addresses: readonly PlatformAddress[],
  { parent, isStrict, tell }: { parent: Environment } & Pick<ConnectProxy, 'isStrict' | 'tell'>,
): Promise<ConnectProxy> {
  const other = isStrict ? undefined : otherProxyIn(parent);
  if (other !== undefined)
    throw new CommandFailed(
      `${other} is set, and --proxy would replace it: requests that are not governed would bypass it. Unset it, or refuse all other hosts with --strict.`,
    );
  const opened = addresses.filter(({ isTls }) => isTls);
  if (opened.length === 0)
    throw new CommandFailed(
      'No platform of this agent has a known https address, so --proxy has nothing to do. A broker of an earlier version does not send the addresses of platforms.',
    );
  // Loaded on demand: this module is a third of the sidecar's size.
  const { makeAuthority } = await import('../../mcp/sidecar/authority.ts');
  return { addresses: opened, authority: makeAuthority([...new Set(opened.map(({ host }) => host))]), isStrict, tell };
}

/** Where several connections share an address, returns sentences for the person about those that are not used. */
export function describeUnusedConnections(addresses: readonly PlatformAddress[]): string[] {
  const places = Map.groupBy(addresses, (one) => `${originOf(one)}${one.path}`);
  return [...places].flatMap(([place, [taken, ...others]]) =>
    taken === undefined || others.length === 0
      ? []
      : `${place} leads to ${taken.connection}, and not to ${others.map(({ connection }) => connection).join(', ')}. Choose with --connection.`,
  );
}

/** @throws CommandFailed for a file of roots that cannot be read */
export function variablesOf(
  { authority }: ConnectProxy,
  run: { parent: Environment; url: string; placeholder: string; folder: string },
): ReturnType<typeof proxyVariables> {
  return proxyVariables(run.parent, {
    ...run,
    certificate: authority.certificate,
    systemRoots: systemRoots(),
    wgetSettings: wgetSettings(run.parent),
    read: (path) => readNamed(path, 'file of certificates'),
  });
}

function readNamed(path: string, kind: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandFailed(`The ${kind} ${path} cannot be read: ${(error as Error).message}`);
  }
}

/** Reads the person's settings of wget, which reads only one such file. */
function wgetSettings({ WGETRC, HOME }: Environment): string {
  const path = WGETRC || (HOME && join(HOME, '.wgetrc'));
  return path && (WGETRC || existsSync(path)) ? readNamed(path, 'file of settings of wget') : '';
}

/** Files of root certificates on Linux distributions (the list of Go's crypto/x509). */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** Returns the system's roots in PEM. Node can return them, too, but parses each one: 100 ms and 8 MB. */
function systemRoots(): string {
  const bundle = process.platform === 'linux' ? BUNDLES.find((path) => existsSync(path)) : undefined;
  if (bundle !== undefined) return readFileSync(bundle, 'utf8');
  const system = getCACertificates('system');
  return (system.length > 0 ? system : getCACertificates('bundled')).map((one) => one.trim()).join('\n');
}

export type Port = { connection: string; variable: string; port: number; address: PlatformAddress };

const variableOf = (connection: string): string =>
  `AGENT_BROKER_${connection.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}_PORT`;

/** Parses each `<connection>[=<port>]`. Throws CommandFailed, or WrongUsage. */
export function readPorts(
  written: readonly string[],
  granted: readonly Granted[],
  addresses: readonly PlatformAddress[],
): Port[] {
  const ports = written.map((text) => {
    // A label may contain an equals sign.
    const isWhole = granted.some(({ name }) => name === text);
    const [, connection = text, number = '0'] = (!isWhole && /^(.*)=(\d{1,5})$/s.exec(text)) || [];
    if (Number(number) > 65_535) throw new WrongUsage(`${number} is no port: --port <connection>[=<port>].`);
    if (!granted.some(({ name }) => name === connection))
      throw new CommandFailed(
        `This run has no connection ${connection}. It has: ${granted.map(({ name }) => name).join(', ')}.`,
      );
    const address = addresses.find((one) => one.connection === connection);
    if (address === undefined)
      throw new CommandFailed(
        `The broker does not send the address of the platform of ${connection}, because its version is too old, so no port can be opened for it.`,
      );
    return { connection, variable: variableOf(connection), port: Number(number), address };
  });
  const [, [first, second] = []] =
    [...Map.groupBy(ports, ({ variable }) => variable)].find(([, { length }]) => length > 1) ?? [];
  if (first !== undefined && second !== undefined)
    throw new CommandFailed(
      `The ports of ${first.connection} and ${second.connection} would use the same variable ${first.variable}. Use only one of them at a time.`,
    );
  return ports;
}
