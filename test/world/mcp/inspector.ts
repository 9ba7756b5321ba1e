/** Runs the MCP Inspector's command line as a separate process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { newFolder } from '../stores.ts';
import { BARE } from './mcp.ts';

const INSPECTOR = resolve(
  import.meta.dirname,
  '../../../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
);

export type Inspected = { code: number | null; stdout: string; stderr: string };

/**
 * Runs it with these arguments, and without state of an earlier run. `seen`: gets all output so far, at each write; without a browser it prints the
 * address that would have to be opened.
 */
export async function inspect(words: readonly string[], seen: (text: string) => void = () => {}): Promise<Inspected> {
  const child: ChildProcess = spawn(process.execPath, [INSPECTOR, '--cli', ...words, '--format', 'json'], {
    env: {
      ...BARE,
      HOME: newFolder(),
      MCP_INSPECTOR_SECRET_STORE: 'memory',
      MCP_AUTO_OPEN_ENABLED: 'true',
      BROWSER: 'true',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]!.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
      seen(written.stdout + written.stderr);
    });
  const code = await new Promise<number | null>((ended) => child.once('close', ended));
  return { code, ...written };
}
