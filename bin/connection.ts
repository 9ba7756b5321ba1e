/** Connects the command line to a running broker: by files in its data folder, or by options. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { localProof } from '../broker/auth/local-proof.ts';
import { visible } from '../broker/console/static/visible.js';
import { runFile } from '../broker/process/run-file.ts';
import { type BrokerReply, type BrokerRequest, BrokerUnreachable, type Send } from '../mcp/client/send.ts';
import { signedSend } from '../mcp/client/signed-send.ts';
import { commandWith, type Reached } from './command-with.ts';
import { CommandFailed, OutcomeUnknown, RefusedByBroker } from './failure.ts';
import { ownerOf, refuseOwner } from './named-owner.ts';
import { PROGRAM } from './program-name.ts';
import { printJson } from './terminal/output.ts';

export type ConnectionOptions = Reached & { ownerToken?: string };

/** Adds the options that all commands connecting to a broker have. */
export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'address of the broker; default: the one that runs on the data folder')
    .option('--owner-token <jwt>', 'owner session (or AGENT_BROKER_OWNER_TOKEN)')
    .option('--email <address>', 'owner to act as; default: the first admin')
    .option('--organisation <id>', 'organisation to act in, by id or name, on a broker with several')
    .option('--data <folder>', 'data folder of the broker (or AGENT_BROKER_DATA)');
}

type RunFile = { url: string; pid: number; local_token: string };

export function dataFolder(options: ConnectionOptions): string {
  return resolve(options.data ?? (process.env.AGENT_BROKER_DATA || './.agent-broker'));
}

function readRunFile(folder: string): RunFile {
  const path = runFile(folder);
  if (!existsSync(path))
    throw new CommandFailed(
      `No broker is running on ${folder}. Start one with "${PROGRAM} serve", name another folder with --data, or another broker with --url and --owner-token.`,
    );
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as RunFile;
  } catch {
    throw new CommandFailed(
      `${path} cannot be read. The broker writes it when it starts: restart the broker on this folder.`,
    );
  }
}

export type BrokerConnection = {
  url: string;
  /** Returns a command line that reaches the same broker and organisation, for messages. `line`: the command, such as `inbox show ID`. */
  command(line: string): string;
  /**
   * Sends a request to the owner API; returns the parsed body. Throws CommandFailed with the broker's message when refused, and
   * OutcomeUnknown when it may have been executed. `signal`: stops waiting for the answer, with OutcomeUnknown.
   */
  ask(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Record<string, unknown>>;
  /**
   * Sends a GET whose answer is too long for memory, and returns its chunks. Throws CommandFailed with the broker's message when refused; the
   * chunks end with an error when the connection breaks.
   */
  download(path: string): Promise<AsyncIterable<Uint8Array>>;
};

/** Long, because an apply of a large governance file and a purge answer only when they are done. */
const TIMEOUT_MS = 300_000;
/** Timeout of the request that checks whether a broker answers. */
const ANSWER_DEADLINE_MS = 15_000;

type Ask = BrokerConnection['ask'];

/** Returns a function that sends requests to a broker, one after the other on the same connection. */
function asking(url: string, token: string | undefined): Ask {
  let send: Send | undefined;
  return async (method, path, body, signal) => {
    let reply: BrokerReply;
    try {
      send ??= signedSend({ url, token: token === undefined ? undefined : () => token, timeoutMs: TIMEOUT_MS });
      reply = await send({
        method: method as BrokerRequest['method'],
        path,
        ...(body !== undefined && { body }),
        ...(signal && { signal }),
      });
    } catch (error) {
      if (error instanceof BrokerUnreachable && error.isCut)
        throw new OutcomeUnknown(`The response of the broker at ${url} was incomplete.`);
      // An invalid URL is a TypeError: nothing was sent.
      const maybeSent = error instanceof BrokerUnreachable ? error.maybeSent : !(error instanceof TypeError);
      const Failure = maybeSent ? OutcomeUnknown : CommandFailed;
      throw new Failure(`The broker at ${url} does not answer. Is it running there?`);
    }
    const answer = readAnswer(reply.text);
    if (reply.status < 200 || reply.status > 299) throw refusalOf(reply.status, answer ?? {});
    // Every response of a broker has a correlation id.
    if (answer && reply.headers.get('x-correlation-id') !== null) return answer;
    throw new OutcomeUnknown(`The server at ${url} is not a broker, or a proxy changed its response.`);
  };
}

async function download(url: string, token: string | undefined, path: string): Promise<AsyncIterable<Uint8Array>> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(url + path, { headers }).catch(() => {
    throw new CommandFailed(`The broker at ${url} does not answer. Is it running there?`);
  });
  if (!response.ok) throw refusalOf(response.status, readAnswer(await response.text().catch(() => '')) ?? {});
  return response.body ?? (async function* () {})();
}

const connection = (url: string, token: string | undefined, options: ConnectionOptions): BrokerConnection => ({
  url,
  command: (line) => commandWith(options, line),
  ask: asking(url, token),
  download: (path) => download(url, token, path),
});

/** Parses a JSON object; undefined when the text is something else. */
function readAnswer(text: string): Record<string, unknown> | undefined {
  if (text === '') return {};
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Only an error of the broker itself, with its code, guarantees that nothing was done. */
function refusalOf(status: number, answer: Record<string, unknown>): CommandFailed {
  const listed: unknown[] = Array.isArray(answer.problems) ? answer.problems : [];
  // The detail may be the first problem, or only say that there are some.
  const problems = listed
    .filter((line) => line !== answer.detail)
    .map((line) => `\n  ${line}`)
    .join('');
  const message = `${answer.detail ?? `The broker answered ${status}.`}${problems}`;
  const { error: code } = answer;
  return status < 500 && typeof code === 'string'
    ? new RefusedByBroker(message, status, code)
    : new OutcomeUnknown(message);
}

/** Connects as the operator of this machine, with the local credential in the data folder. */
export async function connectLocally(options: ConnectionOptions): Promise<BrokerConnection> {
  const running = await localBroker(options);
  return connection(running.url, running.local_token, options);
}

/** Connects without authentication, for requests with a token in the body. */
export async function connectAsNobody(options: ConnectionOptions): Promise<BrokerConnection> {
  return connection(givenUrl(options) ?? (await localBroker(options)).url, undefined, options);
}

/**
 * Finds the broker that runs on the data folder. Throws CommandFailed where something else answers at its address: after a broker was killed, its file
 * still exists, and another user of this machine may have taken its port since.
 */
async function localBroker(options: ConnectionOptions): Promise<RunFile> {
  const folder = dataFolder(options);
  const running = readRunFile(folder);
  const challenge = randomBytes(24).toString('base64url');
  const answer = await askBefore(running.url, { method: 'POST', path: '/owner/local-proof', body: { challenge } });
  if (answer?.proof === localProof(running.local_token, challenge)) return running;
  throw new CommandFailed(
    `The server at ${running.url} is not the broker that wrote ${runFile(folder)}, or is an earlier release of it. Nothing was sent to it. Start the broker again: ${PROGRAM} serve`,
  );
}

/** Returns the given URL, without a trailing slash; undefined when none is given. Throws CommandFailed for an invalid one, or one with a path, such as that of /mcp. */
export function givenUrl(options: ConnectionOptions): string | undefined {
  const url = (options.url ?? (process.env.AGENT_BROKER_URL || undefined))?.replace(/\/+$/, '');
  const { origin, pathname } = (/^https?:/i.test(url ?? '') && URL.parse(url ?? '')) || {};
  if (url === undefined || pathname === '/') return url;
  const how = origin ? `without a path, such as ${origin}` : 'with http:// or https://, such as https://broker.example';
  const where = options.url === undefined ? 'AGENT_BROKER_URL' : '--url';
  throw new CommandFailed(`${where} is ${url}: write the address of the broker ${how}.`);
}

/** Returns the given owner session, without the newline that files and secret stores append; undefined when none is given. Throws CommandFailed. */
export function givenToken(options: ConnectionOptions): string | undefined {
  const token = (options.ownerToken ?? process.env.AGENT_BROKER_OWNER_TOKEN ?? '').trim();
  // Other characters are not allowed in a header.
  if (!/^[\x21-\x7e]*$/.test(token))
    throw new CommandFailed(
      'The owner session (--owner-token, or AGENT_BROKER_OWNER_TOKEN) contains characters that no token contains. It was not sent: copy it again, as "owner token" prints it.',
    );
  return token || undefined;
}

/** Connects as an owner: with the given session, or with one obtained by the local credential of the data folder. */
export async function connectAsOwner(options: ConnectionOptions): Promise<BrokerConnection> {
  const given = givenToken(options);
  const url = givenUrl(options);
  if (given) {
    refuseOwner(options, `an owner session (${options.ownerToken ? '--owner-token' : 'AGENT_BROKER_OWNER_TOKEN'})`);
    if (url !== undefined) await expectBroker(url);
    return connection(url ?? (await localBroker(options)).url, given, options);
  }
  if (url !== undefined && !isLocal(url, options))
    throw new CommandFailed(
      `With ${options.url ? '--url' : 'AGENT_BROKER_URL'} an owner session is needed too: --owner-token, or AGENT_BROKER_OWNER_TOKEN.`,
    );
  const local = await connectLocally(options);
  const session = await local.ask('POST', '/owner/token', ownerOf(options));
  const token = String(session.token);
  return connection(local.url, token, options);
}

/** Throws CommandFailed when the server is not a broker: a wrong address gets neither the owner's session nor a secret. */
async function expectBroker(url: string): Promise<void> {
  if ((await askBefore(url, { method: 'GET', path: '/version' }))?.service !== 'proxy')
    throw new CommandFailed(
      `The server at ${url} is not a broker, according to its /version. No session and no secret were sent to it.`,
    );
}

/**
 * Sends a request without authentication, to identify the server. Returns undefined when the answer is not a JSON object. Throws CommandFailed without
 * an answer.
 */
async function askBefore(url: string, request: BrokerRequest): Promise<Record<string, unknown> | undefined> {
  try {
    return readAnswer((await signedSend({ url, timeoutMs: ANSWER_DEADLINE_MS })(request)).text);
  } catch {
    throw new CommandFailed(`The broker at ${url} does not answer. Is it running there?`);
  }
}

/** Whether the URL belongs to the broker of the data folder. */
function isLocal(url: string, options: ConnectionOptions): boolean {
  const folder = dataFolder(options);
  return existsSync(runFile(folder)) && hostOf(readRunFile(folder).url) === hostOf(url);
}

/** All names of loopback are equivalent. */
const hostOf = (url: string): string | undefined =>
  URL.parse(url)?.host.replace(/^(localhost|127\.0\.0\.1|\[::1\])(?=:|$)/, 'localhost');

/** Prints a result as JSON with `--json`, otherwise as text in which control characters from other people's data are made harmless. */
export function print(options: { json?: boolean }, value: unknown, text: () => string): void {
  if (options.json) printJson(value);
  else process.stdout.write(`${visible(text())}\n`);
}
