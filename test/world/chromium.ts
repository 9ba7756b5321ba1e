/** Real Chromium, driven over its debugging protocol. Only loopback pages are opened. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { afterFile } from './after-file.ts';
import { type Authenticator, plugIn } from './authenticator.ts';
import { connectDevtools, type Devtools } from './devtools.ts';
import { press } from './keyboard.ts';
import { patience } from './patience.ts';
import { newFolder } from './stores.ts';

const FULL = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
/** The same engine without a browser's own windows, which take a third of the time; it has neither push nor notifications. */
const SHELL = ['/usr/lib/chromium/chromium-headless-shell'].find(existsSync);

/** Why there is no browser to test with; undefined when there is one. In CI there has to be. */
export const withoutChromium: string | undefined =
  FULL === undefined ? 'Chromium is not installed (on Debian: apt-get install chromium)' : undefined;
if (withoutChromium && process.env.CI) throw new Error(withoutChromium);

/** Pictures for people to look at: they are not kept in the repository. */
const ARTEFACTS = resolve(import.meta.dirname, '..', '..', 'test-artefacts');

export type Size = { width: number; height: number };

export type Page = {
  open(url: string): Promise<void>;
  /** The value of an expression in the page. Throws what it throws. */
  value<T>(expression: string): Promise<T>;
  /** Waits until the expression is true, 15 s at most if not said otherwise; one that throws, as while a page loads, is not. */
  until(expression: string, patienceMs?: number): Promise<void>;
  /** The pointer goes to the middle of the first element that the selector finds, once there is one, and clicks; a phone is tapped there. */
  click(selector: string): Promise<void>;
  /** `Enter`, `a`, `?`, `Shift+Tab`, … */
  press(...keys: string[]): Promise<void>;
  /** Writes where the focus is. */
  type(text: string): Promise<void>;
  /** From now on the window has this size; a phone's has touch and twice the pixels. */
  resize(size: Size, as?: 'window' | 'phone'): Promise<void>;
  /** From now on the person prefers this. */
  prefer(scheme: 'light' | 'dark'): Promise<void>;
  /** Cuts this page off from everything, or lets it through again. */
  offline(cut: boolean): Promise<void>;
  /** Plugs in a passkey authenticator made of software; `options` are those of WebAuthn.addVirtualAuthenticator. */
  authenticator(options?: object): Promise<Authenticator>;
  /** The debugging protocol itself, for what is too rare to have a name here. */
  command: Devtools['command'];
  on: Devtools['on'];
  /** Resolves when the page is gone, with its browser, too. */
  closed: Devtools['closed'];
  /** What the page wrote to the console as errors, and what its policy refused. */
  complaints: string[];
  /** What the browser asked in a box of its own, such as `beforeunload`; the person says yes. */
  asked: string[];
  /** From now on the person lets pages do this, such as `clipboardReadWrite` (Browser.PermissionType of the debugging protocol). */
  allow(...permissions: string[]): Promise<void>;
  /** One more page of the same person: it shares the cookies. */
  tab(): Promise<Page>;
  close(): Promise<void>;
  /** Writes a PNG into test-artefacts/, or wherever an absolute path says; in CI only with PICTURES=1. */
  screenshot(name: string): Promise<void>;
};

export type Browser = {
  /** A page of its own: it shares no cookies with the others. */
  page(size: Size): Promise<Page>;
};

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--hide-scrollbars',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--remote-debugging-port=0',
];

/** A page of this size, of nobody else; it ends with the test file. */
export async function openPage(size: Size): Promise<Page> {
  return await (await startBrowser()).page(size);
}

/** A browser whose pages end with the test file. `full`: one that has push and notifications, too. */
export async function startBrowser({ full = false }: { full?: boolean } = {}): Promise<Browser> {
  const { address, browser } =
    full || SHELL === undefined ? await connected(await startForFile(FULL!)) : await sharedShell(SHELL);
  const contexts: string[] = [];
  afterFile(async () => {
    const disposed = contexts.map((browserContextId) =>
      browser.command('Target.disposeBrowserContext', { browserContextId }),
    );
    await Promise.race([Promise.all(disposed), browser.closed]);
    browser.close();
  });
  const open = async (browserContextId: string, size: Size): Promise<Page> => {
    const { targetId } = await browser.command('Target.createTarget', { url: 'about:blank', browserContextId });
    const page = await pageAt(`ws://${new URL(address).host}/devtools/page/${targetId}`);
    await page.resize(size);
    return {
      ...page,
      allow: async (...permissions) => {
        await browser.command('Browser.grantPermissions', { browserContextId, permissions });
      },
      tab: () => open(browserContextId, size),
      close: () => browser.command('Target.closeTarget', { targetId }),
    };
  };
  return {
    page: async (size) => {
      const { browserContextId } = await browser.command('Target.createBrowserContext');
      contexts.push(browserContextId);
      return await open(browserContextId, size);
    },
  };
}

type Connected = { address: string; browser: Devtools };
const connected = async (address: string): Promise<Connected> => ({ address, browser: await connectDevtools(address) });

let shell: Promise<string> | undefined;

/**
 * Connects to the one that all test files of this process use, one after the other, each in contexts of its own: starting it takes more
 * processor time than many a file. One that has crashed is started again.
 */
async function sharedShell(binary: string): Promise<Connected> {
  shell ??= startShell(binary);
  const known = shell;
  try {
    return await connected(await known);
  } catch {
    if (shell === known) shell = startShell(binary);
    return await connected(await shell);
  }
}

/** Starts one that ends with this process. Answers its address. */
function startShell(binary: string): Promise<string> {
  // Without a folder it keeps everything in memory. It ends when the pipes close, which they do however this process ends.
  const child = spawn(binary, [...FLAGS, '--remote-debugging-pipe', 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  // None of it keeps this process from ending.
  child.unref();
  for (const pipe of child.stdio) (pipe as Socket | null)?.unref();
  return debuggerAddress(child);
}

/** Starts one that ends with the test file. Answers its address. */
function startForFile(binary: string): Promise<string> {
  const child = spawn(binary, [...FLAGS, `--user-data-dir=${newFolder()}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise((done) => child.once('exit', done));
  afterFile(async () => {
    child.kill();
    await ended;
  });
  return debuggerAddress(child);
}

function debuggerAddress(child: ChildProcess): Promise<string> {
  return new Promise((found, reject) => {
    let text = '';
    child.stderr!.on('data', (chunk) => {
      text = (text + chunk).slice(-10_000);
      const match = /DevTools listening on (ws:\S+)/.exec(text);
      if (match) found(match[1]!);
    });
    child.once('exit', () => reject(new Error(`Chromium ended: ${text.slice(-500)}`)));
  });
}

/**
 * An expression: the middle of an element in sight that stands still, is enabled, and has nothing in front of it; else undefined. Whether the next press
 * is on it is in `pressed` then: what is loaded meanwhile may move it.
 */
const clickableAt = (selector: string): string => `(async () => {
  const found = document.querySelector(${JSON.stringify(selector)});
  found?.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  const middle = () => {
    const { x, y, width, height } = found.getBoundingClientRect();
    return { x: x + width / 2, y: y + height / 2 };
  };
  const before = found && middle();
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const { x, y } = middle();
  const isOn = (at) => at !== null && (found.contains(at) || at.contains(found));
  const ready = before.x === x && before.y === y && found.getClientRects().length > 0 && !found.matches(':disabled');
  if (!ready || !isOn(document.elementFromPoint(x, y))) return undefined;
  globalThis.pressed = undefined;
  addEventListener('pointerdown', ({ target }) => { globalThis.pressed = isOn(target); }, { capture: true, once: true });
  return { x, y };
})()`;

/** How often the pointer may find that what it was to press has moved. */
const MOST_MISSED = 3;

const pause = (ms: number) => new Promise((over) => setTimeout(over, ms));

async function pageAt(address: string): Promise<Omit<Page, 'allow' | 'tab' | 'close'>> {
  const devtools = await connectDevtools(address);
  const { command } = devtools;
  const complaints: string[] = [];
  const asked: string[] = [];
  devtools.on('Runtime.exceptionThrown', (params) => complaints.push(JSON.stringify(params)));
  devtools.on('Log.entryAdded', ({ entry }) => {
    if (entry.level === 'error') complaints.push(`${entry.text} ${entry.url ?? ''}`);
  });
  devtools.on('Page.javascriptDialogOpening', ({ type }) => {
    asked.push(type);
    // A page that is gone meanwhile asks no more.
    command('Page.handleJavaScriptDialog', { accept: true }).catch(() => {});
  });
  for (const domain of ['Page', 'Runtime', 'Log']) await command(`${domain}.enable`);

  let isTouched = false;
  const value = async <T>(expression: string): Promise<T> => {
    const { result, exceptionDetails } = await command('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(`${expression}\n${exceptionDetails.exception?.description}`);
    return result.value;
  };
  const untilSo = async (what: string, is: () => Promise<boolean>, patienceMs = 15_000) => {
    const end = Date.now() + patience(patienceMs);
    while (!(await is().catch(() => false))) {
      if (Date.now() > end) throw new Error(`never came true: ${what}\n${await value('document.body.innerText')}`);
      await pause(50);
    }
  };
  const until = (expression: string, patienceMs?: number) =>
    untilSo(expression, () => value<boolean>(expression), patienceMs);
  return {
    command,
    on: devtools.on,
    closed: devtools.closed,
    complaints,
    asked,
    value,
    until,
    open: async (url) => {
      await command('Page.navigate', { url });
    },
    click: async (selector) => {
      for (let missed = 0; missed < MOST_MISSED; missed++) {
        let at: { x: number; y: number } | undefined;
        await untilSo(`${selector} can be clicked`, async () => {
          at = await value(clickableAt(selector));
          return Boolean(at);
        });
        if (isTouched) {
          await command('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [at] });
          await command('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
        } else {
          const event = { ...at, button: 'left', clickCount: 1 };
          await command('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at });
          await command('Input.dispatchMouseEvent', { type: 'mousePressed', ...event });
          await command('Input.dispatchMouseEvent', { type: 'mouseReleased', ...event });
        }
        // Another page has none, and one that is on its way answers nothing.
        if ((await value<boolean>('globalThis.pressed').catch(() => undefined)) !== false) return;
      }
      throw new Error(`${selector} moves away from the pointer`);
    },
    press: async (...keys) => {
      for (const key of keys) await press(devtools, key);
    },
    type: async (text) => {
      await command('Input.insertText', { text });
    },
    resize: async (size, as = 'window') => {
      const phone = as === 'phone';
      isTouched = phone;
      await command('Emulation.setDeviceMetricsOverride', { ...size, mobile: phone, deviceScaleFactor: phone ? 2 : 1 });
      await command('Emulation.setTouchEmulationEnabled', { enabled: phone });
    },
    prefer: async (scheme) => {
      const features = [{ name: 'prefers-color-scheme', value: scheme }];
      await command('Emulation.setEmulatedMedia', { features });
    },
    offline: async (cut) => {
      await command('Network.enable');
      const speed = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
      await command('Network.emulateNetworkConditions', { offline: cut, ...speed });
    },
    authenticator: (options) => plugIn(devtools, options),
    screenshot: async (name) => {
      // Pictures are for people: where nobody looks at them they only cost time.
      if (process.env.CI && !process.env.PICTURES) return;
      const path = name.startsWith('/') ? name : join(ARTEFACTS, name);
      mkdirSync(dirname(path), { recursive: true });
      const { data } = await command('Page.captureScreenshot');
      writeFileSync(path, Buffer.from(data, 'base64'));
    },
  };
}
