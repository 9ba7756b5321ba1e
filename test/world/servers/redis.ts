/** A redis-server on loopback, with a password, that a test can pause, stop and start again. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { freePort } from '../../../bench/free-port.ts';
import { afterFile } from '../runner/after-file.ts';
import { newFolder } from '../stores.ts';

export type RedisServer = {
  /** Includes the password. */
  url: string;
  password: string;
  /** All keys in it. */
  keys(): Promise<string[]>;
  /** Keeps connections open, and answers nothing. */
  pause(): void;
  resume(): void;
  /** Kills it; all data is lost. */
  stop(): Promise<void>;
  /** Starts it again at the same port. */
  start(): Promise<void>;
};

/** Whether redis-server is installed. CI must have it. */
export async function hasRedis(): Promise<boolean> {
  try {
    await promisify(execFile)('redis-server', ['--version']);
    return true;
  } catch (error) {
    if (process.env.CI) throw new Error('CI must test with a redis-server: install it.', { cause: error });
    return false;
  }
}

export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  const folder = newFolder();
  const password = randomBytes(12).toString('hex');
  let child: ChildProcess;
  const start = async (): Promise<void> => {
    const settings = { port, bind: '127.0.0.1', dir: folder, save: '', appendonly: 'no', requirepass: password };
    child = spawn(
      'redis-server',
      Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`]),
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let said = '';
    for await (const text of child.stdout!.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      said += text;
      if (said.includes('Ready to accept connections')) break;
    }
    child.stdout!.resume();
    if (child.exitCode !== null) throw new Error(`redis-server did not start: ${said}`);
  };
  await start();
  afterFile(() => child.kill('SIGKILL'));
  const url = `redis://:${password}@127.0.0.1:${port}`;
  return {
    url,
    password,
    keys: async () => {
      const client = new Redis(url);
      try {
        return await client.keys('*');
      } finally {
        client.disconnect();
      }
    },
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    stop: async () => {
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    },
    start,
  };
}
