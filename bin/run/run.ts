/** `agent-broker run`: starts a command that was not written for the broker, with a sidecar that signs for it. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import spawn from 'cross-spawn';
import { CallerProblem } from '../../mcp/caller-problem.ts';
import { agentClient } from '../../mcp/client/agent-client.ts';
import { signedSend } from '../../mcp/client/signed-send.ts';
import { type CallerOptions, callerHeader } from '../../mcp/configured-caller.ts';
import { withoutEnclosingRun } from '../../mcp/sidecar/enclosing-run.ts';
import {
  type Chosen,
  choose,
  codehostOf,
  environmentFor,
  type Granted,
  grantedOf,
  pathStartsOf,
  registryPathsOf,
} from '../../mcp/sidecar/environment.ts';
import type { Broker } from '../../mcp/sidecar/forward.ts';
import { readGitRules } from '../../mcp/sidecar/git-rules.ts';
import { newPlaceholder } from '../../mcp/sidecar/placeholder.ts';
import { platformAddresses } from '../../mcp/sidecar/platform-address.ts';
import { startSidecar } from '../../mcp/sidecar/sidecar.ts';
import { isCredential } from '../exposure/variables.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { addressesOf } from '../git/addresses.ts';
import { PROGRAM } from '../program-name.ts';
import { proxyBaseUrl } from '../proxy-base-url.ts';
import { commandLine } from '../server-entry.ts';
import { makeRunFolder, socketIn } from './folder.ts';
import { brokerOf } from './profile-broker.ts';
import { describeUnusedConnections, makeProxy, readPorts, variablesOf } from './proxy.ts';

export type RunOptions = CallerOptions & {
  connection: string[];
  port: string[];
  proxy?: boolean;
  profile?: string;
  strict?: boolean;
  /** How many seconds a call waits for an approval. */
  wait?: number;
  verbose?: boolean;
};

const CODE_HOST = new URL('https://github.com');

/**
 * Runs the command to its end. Returns its exit code: 128 plus the number of the signal that ended it, 127 if the command is not found,
 * 126 if it cannot be run. `say`: shows a line to the person.
 *
 * @throws CommandFailed before the command is started
 */
export async function run(
  command: readonly string[],
  options: RunOptions,
  say: (line: string) => void,
): Promise<number> {
  if (command[0] === '') throw new WrongUsage('The command is empty: write it after --.');
  const broker = brokerOf(options.profile);
  const caller = callerOf(options);
  const granted = named(await askGranted(broker, options.profile), options.connection);
  const chosen = choose(granted);
  const isStrict = options.strict === true;
  const parent = withoutEnclosingRun(process.env);
  const addresses = platformAddresses(granted, { chosen, isNamed: options.connection.length > 0 });
  const ports = readPorts(options.port, granted, addresses);
  const tell = options.verbose ? (line: string) => say(`agent-broker: ${line}`) : undefined;
  const proxy = options.proxy ? await makeProxy(addresses, { parent, isStrict, tell }) : undefined;
  const folder = await makeRunFolder();
  let close = () => {};
  try {
    const placeholder = newPlaceholder();
    const codehost = codehostOf(chosen);
    // On Windows gh supports no Unix socket.
    const socket = process.platform === 'win32' ? undefined : socketIn(folder);
    const connections = granted.map(({ name }) => name);
    const proxyBroker = { ...broker, url: await proxyBaseUrl(broker.url) };
    const { wait } = options;
    const errors = new Map(granted.flatMap((one) => (one.errors ? [[one.name, one.errors]] : [])));
    const served = {
      broker: proxyBroker,
      placeholder,
      caller,
      wait,
      errors,
      connections,
      codehost,
      registryPaths: registryPathsOf(chosen),
      pathStarts: pathStartsOf(chosen),
      socket,
      ports,
      proxy,
    };
    const sidecar = await startSidecar(served).catch((error) => {
      throw new CommandFailed(`The sidecar cannot listen: ${error.message}`);
    });
    close = sidecar.close;
    const { url } = sidecar;
    const made = environmentFor(parent, {
      ...{ url, placeholder, folder, chosen, isStrict, isCredential },
      socket: codehost === undefined ? undefined : socket,
      codeHosts: addressesOf(CODE_HOST),
      gitRules: codehost === undefined ? undefined : await readGitRules(parent),
    });
    const proxied = proxy && variablesOf(proxy, { parent, url, placeholder, folder });
    const told = ports.map(({ variable }, i): [string, string] => [variable, String(sidecar.ports[i])]);
    if (socket !== undefined) told.push(['AGENT_BROKER_RUN_SOCKET', socket]);
    const environment = { ...made.environment, ...proxied?.environment, ...Object.fromEntries(told) };
    for (const [name, content] of Object.entries({ ...made.files, ...proxied?.files })) {
      mkdirSync(dirname(join(folder, name)), { recursive: true, mode: 0o700 });
      writeFileSync(join(folder, name), content, { mode: 0o600 });
    }
    tellChosen(chosen, made.kept, options, say);
    if (proxy && options.connection.length === 0)
      for (const line of describeUnusedConnections(proxy.addresses)) say(`agent-broker: ${line}`);
    // The sidecar is idle most of the time: less garbage of TLS is kept (92 MB in place of 148 after 3,600 connections). Set last, because cached
    // compiled code is not found with another flag.
    setFlagsFromString('--optimize-for-size');
    return await runToItsEnd(command, environment, say);
  } finally {
    close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function callerOf(options: CallerOptions): ReturnType<typeof callerHeader> {
  try {
    return callerHeader(options, process.env);
  } catch (error) {
    throw error instanceof CallerProblem ? new WrongUsage(error.message) : error;
  }
}

async function askGranted(broker: Broker, profile: string | undefined): Promise<Granted[]> {
  const command = (line: string) =>
    [PROGRAM, line, ...(profile === undefined ? [] : [commandLine(['--profile', profile])])].join(' ');
  let client: ReturnType<typeof agentClient>;
  try {
    client = agentClient(signedSend(broker));
  } catch {
    throw new CommandFailed(`The profile's url is no http or https address: ${broker.url}`);
  }
  const answer = await client.permissions();
  if (!answer.ok)
    throw new CommandFailed(
      `${answer.error.message} The command was not started; "${command('doctor')}" looks further.`,
    );
  const granted = grantedOf(answer.value.permissions);
  if (granted.length === 0)
    throw new CommandFailed(
      `This agent has no grant on any connection, so the command was not started. An owner can grant it one; ask with: ${command('request-access PLATFORM')}`,
    );
  return granted;
}

/** Returns the connections that the options name, in that order; all of them without any name. */
function named(granted: readonly Granted[], names: readonly string[]): Granted[] {
  if (names.length === 0) return [...granted];
  return names.map((name) => {
    const found = granted.find((one) => one.name === name);
    if (found) return found;
    const there = granted.map((one) => one.name).join(', ');
    throw new CommandFailed(`This agent has no grant on a connection ${name}. It has: ${there}.`);
  });
}

function tellChosen(
  chosen: readonly Chosen[],
  kept: readonly string[],
  options: RunOptions,
  say: (line: string) => void,
): void {
  for (const { tool, connection, others } of chosen) {
    if (options.verbose) say(`agent-broker: ${tool.platformName} leads to the connection ${connection.name}.`);
    if (others.length > 0 && options.connection.length === 0)
      say(
        `agent-broker: ${tool.platformName} leads to ${connection.name}, and not to ${others.map(({ name }) => name).join(', ')}. Choose with --connection.`,
      );
  }
  if (options.verbose && kept.length > 0)
    say(
      `agent-broker: these variables are kept, and may be credentials: ${kept.join(', ')}. --strict leaves them out.`,
    );
}

/** A terminal sends these signals to all of its processes itself. */
const OF_TERMINALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT'];
const PASSED_ON: readonly NodeJS.Signals[] = [...OF_TERMINALS, 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];

function runToItsEnd(
  [command = '', ...args]: readonly string[],
  env: Record<string, string>,
  say: (line: string) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    // Registered before the command starts: a signal that arrives meanwhile is handled once it has started.
    const passOn = (signal: NodeJS.Signals) => {
      if (!(OF_TERMINALS.includes(signal) && process.stdin.isTTY)) child.kill(signal);
    };
    for (const signal of PASSED_ON) process.on(signal, passOn);
    // On Windows most commands of npm (npx, claude, …) are scripts, which Node's own spawn does not find.
    const child = spawn(command, args, { env, stdio: 'inherit' });
    const end = () => {
      for (const signal of PASSED_ON) process.off(signal, passOn);
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      end();
      if (error.code !== 'ENOENT' && error.code !== 'EACCES') return reject(new CommandFailed(error.message));
      say(`agent-broker: ${command}: ${error.code === 'ENOENT' ? 'no such command' : 'it cannot be run'}.`);
      resolve(error.code === 'ENOENT' ? 127 : 126);
    });
    child.once('exit', (code, signal) => {
      end();
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0));
    });
  });
}
