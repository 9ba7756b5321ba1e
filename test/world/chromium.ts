/** Real Chromium, driven over its debugging protocol. Only loopback pages are opened. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { afterFile } from './after-file.ts';
import { newFolder } from './stores.ts';

const BINARY = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** Why there is no browser to test with; undefined when there is one. In CI there has to be. */
export const withoutChromium: string | undefined =
  BINARY === undefined ? 'Chromium is not installed (on Debian: apt-get install chromium)' : undefined;
if (withoutChromium && process.env.CI) throw new Error(withoutChromium);

export type Page = {
  open(url: string): Promise<void>;
  /** The value of an expression in the page. */
  value<T>(expression: string): Promise<T>;
  /** Waits until the expression is true, 10 s at most. */
  until(expression: string): Promise<void>;
  /** What the page wrote to the console as errors, and what its policy refused. */
  complaints: string[];
  screenshot(path: string): Promise<void>;
};

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--remote-debugging-port=0',
];

/** Starts a browser with one page of this size; it ends with the test file. */
export async function openPage(size: { width: number; height: number }): Promise<Page> {
  const child = spawn(
    BINARY!,
    [...FLAGS, `--user-data-dir=${newFolder()}`, `--window-size=${size.width},${size.height}`, 'about:blank'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  afterFile(async () => {
    const ended = new Promise((done) => child.once('exit', done));
    child.kill();
    await ended;
  });
  const { host } = new URL(await debuggerAddress(child));
  const targets = (await (await fetch(`http://${host}/json`)).json()) as {
    type: string;
    webSocketDebuggerUrl: string;
  }[];
  const socket = new WebSocket(targets.find(({ type }) => type === 'page')!.webSocketDebuggerUrl);
  await new Promise((opened) => socket.addEventListener('open', opened, { once: true }));
  return pageOver(socket);
}

function debuggerAddress(child: ChildProcess): Promise<string> {
  return new Promise((found, reject) => {
    let text = '';
    child.stderr!.on('data', (chunk) => {
      text += chunk;
      const match = /DevTools listening on (ws:\S+)/.exec(text);
      if (match) found(match[1]!);
    });
    child.once('exit', () => reject(new Error(`Chromium ended: ${text.slice(-500)}`)));
  });
}

async function pageOver(socket: WebSocket): Promise<Page> {
  const waiting = new Map<number, (result: Record<string, unknown>) => void>();
  const complaints: string[] = [];
  let last = 0;
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data));
    if (message.id) waiting.get(message.id)?.(message.result ?? {});
    if (message.method === 'Runtime.exceptionThrown') complaints.push(JSON.stringify(message.params));
    if (message.method === 'Log.entryAdded' && message.params.entry.level === 'error')
      complaints.push(`${message.params.entry.text} ${message.params.entry.url ?? ''}`);
  });
  const command = (method: string, params: object = {}): Promise<Record<string, unknown>> =>
    new Promise((answered) => {
      waiting.set(++last, answered);
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  for (const domain of ['Page', 'Runtime', 'Log']) await command(`${domain}.enable`);
  const value = async <T>(expression: string): Promise<T> => {
    const { result } = await command('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    return (result as { value: T }).value;
  };
  return {
    complaints,
    value,
    open: async (url) => {
      await command('Page.navigate', { url });
    },
    until: async (expression) => {
      const end = Date.now() + 10_000;
      while (!(await value<boolean>(expression))) {
        if (Date.now() > end)
          throw new Error(`never came true: ${expression}\n${await value('document.body.innerText')}`);
        await new Promise((again) => setTimeout(again, 50));
      }
    },
    screenshot: async (path) => {
      const { data } = await command('Page.captureScreenshot');
      writeFileSync(path, Buffer.from(String(data), 'base64'));
    },
  };
}
