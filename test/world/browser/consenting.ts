/** A command that prints an address for a consent and waits for it, with a browser in which its owner is signed in. */

import { spawn } from 'node:child_process';
import { sessionCookieName } from '../../../broker/auth/session-cookie.ts';
import { BIN } from '../checkout.ts';
import { runCommand, type Served } from '../command.ts';
import { afterFile } from '../runner/after-file.ts';
import { Browser } from './browser.ts';

export type Waiting = {
  /** The printed address; empty when the command ended without one. */
  url: string;
  /** The output so far. */
  printed(): { stdout: string; stderr: string };
  /** Its exit code. */
  ended: Promise<number | null>;
};

/** Runs the command until it has printed an address on a line of its own, or has ended; it is ended with the test file. */
export async function startConsenting(
  words: readonly string[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<Waiting> {
  const child = spawn(process.execPath, [BIN, ...words], { cwd, env: { PATH: process.env.PATH, ...env } });
  afterFile(() => void child.kill());
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  const link = new Promise<string>((found) => {
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
      const [, url] = /^ {2}(http\S+)$/m.exec(stderr) ?? [];
      if (url) found(url);
    });
  });
  const ended = new Promise<number | null>((done) => child.on('close', done));
  const url = await Promise.race([link, ended.then(() => '')]);
  return { url, printed: () => ({ stdout, stderr }), ended };
}

/** Returns a browser of the first owner of this broker. */
export async function ownersBrowser(
  served: Served,
  setting: { cwd: string; env: Record<string, string> },
): Promise<Browser> {
  const browser = new Browser();
  const { stdout: session } = await runCommand(['owner', 'token'], setting);
  browser.cookies.push({
    name: sessionCookieName(served.url),
    value: session.trim(),
    host: new URL(served.url).hostname,
    path: '/',
  });
  return browser;
}
