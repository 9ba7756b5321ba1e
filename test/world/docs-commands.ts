/** Runs the commands of docs pages: their prerequisites, a broker as they start it, and their blocks one by one. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { BIN, COMPILE_CACHE } from './checkout.ts';
import { afterFile } from './runner/after-file.ts';

const run = promisify(execFile);

/** The address in the pages. */
export const SHOWN_AT = 'http://localhost:8787';

/** Tools that the commands need and that are missing: then these tests are skipped, with the reason. CI must have them. */
export const missingTools = ['bash', 'curl', 'openssl'].filter((tool) => {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
});
if (missingTools.length > 0 && process.env.CI)
  throw new Error(`CI must run the docs: ${missingTools.join(', ')} missing.`);
export const toolNote = missingTools.length > 0 ? ` (skipped: ${missingTools.join(', ')} not installed)` : '';

/** Starts a broker as a page does, on a free port; it ends with the test file. Returns its address. */
export function startAsShown(
  folder: string,
  data: string,
  words: readonly string[] = [],
  more: Record<string, string> = {},
): Promise<string> {
  const env = { ...serving(data), ...more };
  return started(spawn(process.execPath, [BIN, 'serve', ...words], { cwd: folder, env, stdio: OUTPUT }));
}

/** Does the same by running the page's own block unchanged. `more`: environment variables that the test machine needs. */
export function startBlock(block: string, at: ShellWorld, more: Record<string, string>): Promise<string> {
  const script = `npx() { shift; exec "${process.execPath}" "${BIN}" "$@"; }\n${block}`;
  const env = { ...serving(at.data), HOME: at.home ?? at.folder, ...more };
  return started(spawn('bash', ['-euc', script], { cwd: at.folder, env, stdio: OUTPUT }));
}

const OUTPUT: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];

const serving = (data: string) => ({
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: COMPILE_CACHE,
  PORT: '0',
  DRAIN_SECONDS: '0',
  LOG_LEVEL: 'silent',
  AGENT_BROKER_DATA: data,
});

function started(broker: ChildProcess): Promise<string> {
  afterFile(() => ended(broker));
  return new Promise((found, reject) => {
    let output = '';
    for (const stream of [broker.stdout, broker.stderr])
      stream?.on('data', (chunk: Buffer) => {
        output += chunk;
        const address = /running at (http:\S+)/.exec(output)?.[1];
        if (address) found(address);
      });
    broker.once('exit', (code) => reject(new Error(`the broker ended with ${code}: ${output}`)));
  });
}

async function ended(broker: ChildProcess): Promise<void> {
  if (broker.exitCode !== null) return;
  const exit = new Promise((done) => broker.once('exit', done));
  broker.kill('SIGTERM');
  await exit;
}

/**
 * `state`: the file that carries exported variables and the folder from one block to the next. `home`: set when it is not the folder in which the
 * blocks run.
 */
export type ShellWorld = { folder: string; baseUrl: string; data: string; state: string; home?: string };

/** Runs one block, with the variables that earlier ones exported. Returns its output. */
export async function perform(block: string, at: ShellWorld): Promise<string> {
  const host = (url: string) => `@${new URL(url).host}`;
  const here = block.replaceAll(SHOWN_AT, at.baseUrl).replaceAll(host(SHOWN_AT), host(at.baseUrl));
  const script = [
    'set -euo pipefail',
    `npx() { shift; "${process.execPath}" "${BIN}" "$@"; }`,
    `if [ -f "${at.state}" ]; then . "${at.state}"; cd "$PWD"; fi`,
    here.replaceAll('/tmp/', `${at.folder}/`),
    `declare -px > "${at.state}"`,
  ].join('\n');
  const env = {
    PATH: process.env.PATH,
    HOME: at.home ?? at.folder,
    AGENT_BROKER_DATA: at.data,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  };
  const { stdout } = await run('bash', ['-c', script], { cwd: at.folder, env });
  return stdout.replaceAll(at.baseUrl, SHOWN_AT);
}

/** Normalises the parts of an output that differ between runs. */
export const still = (text: string): string =>
  text
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uuid>')
    .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<moment>')
    .replaceAll(/\bagt_[a-z0-9]{20,21}\b/g, '<agent>')
    .replaceAll(/(?<![\w-])[\w-]{43}(?![\w-])/g, '<thumbprint>')
    .replaceAll(/\bscopes: \d+$/gm, 'scopes: <number>');

/** Normalises JSON, and drops the newest checkpoint of the receipt log, which appears some seconds after the first call. */
export function stillJson(text: string): unknown {
  const value = JSON.parse(still(text)) as { _meta?: { log?: unknown } };
  if (value._meta) delete value._meta.log;
  return value;
}
