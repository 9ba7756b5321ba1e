/** Chromium, controlled over its debugging protocol. Only loopback pages are opened. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { describe, onTestFinished } from 'vitest';
import { afterFile } from '../runner/after-file.ts';
import { isRepeatingSetup } from '../runner/repeat-setup.ts';
import { scaledTimeout } from '../runner/test-timeouts.ts';
import { thorough } from '../runner/thorough.ts';
import { newFolder } from '../stores.ts';
import { type Authenticator, plugIn } from './authenticator.ts';
import { connectDevtools, type Devtools } from './devtools.ts';
import { KeptPages } from './kept-pages.ts';
import { press } from './keyboard.ts';

const FULL = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
/** The same engine without windows, in two thirds of the time; it has neither push nor notifications. */
const SHELL = ['/usr/lib/chromium/chromium-headless-shell'].find(existsSync);

/** Why there is no browser for tests; undefined when there is one. CI must have one. */
export const withoutChromium: string | undefined =
  FULL === undefined ? 'Chromium is not installed (on Debian: apt-get install chromium)' : undefined;
if (withoutChromium && process.env.CI) throw new Error(withoutChromium);

/** `describe` for tests in Chromium. Where there is none they are skipped, and the title says why. */
export const describeInChromium = (title: string, tests: () => void, timeoutMs = 60_000): void => {
  const reason = withoutChromium ? ` (skipped: ${withoutChromium})` : '';
  describe.skipIf(withoutChromium)(title + reason, { timeout: scaledTimeout(timeoutMs) }, tests);
};

/** Pictures for people; not kept in the repository. */
const ARTEFACTS = resolve(import.meta.dirname, '..', '..', '..', 'test-artefacts');

export type Size = { width: number; height: number };

export type Page = {
  open(url: string): Promise<void>;
  /** Evaluates an expression in the page. Throws what it throws. */
  value<T>(expression: string): Promise<T>;
  /** Waits until the expression is true, 15 s at most by default; an expression that throws, as while a page loads, counts as false. */
  until(expression: string, patienceMs?: number): Promise<void>;
  /** Waits for the first element that matches the selector, and clicks its middle; on a phone it taps. */
  click(selector: string): Promise<void>;
  /** `Enter`, `a`, `?`, `Shift+Tab`, … */
  press(...keys: string[]): Promise<void>;
  /** Types at the focus. */
  type(text: string): Promise<void>;
  /** Sets the size of the window; a phone has touch and twice the pixels. */
  resize(size: Size, as?: 'window' | 'phone'): Promise<void>;
  /** Sets the preferred colour scheme. */
  prefer(scheme: 'light' | 'dark'): Promise<void>;
  /** Switches this page offline, or online again. */
  offline(cut: boolean): Promise<void>;
  /** Adds a virtual passkey authenticator; `options` are those of WebAuthn.addVirtualAuthenticator. */
  authenticator(options?: object): Promise<Authenticator>;
  /** The debugging protocol itself, for rarely needed commands. */
  command: Devtools['command'];
  on: Devtools['on'];
  /** Resolves when the page is closed, also with its browser. */
  closed: Devtools['closed'];
  /** Console errors of the page, and violations of its Content-Security-Policy. */
  complaints: string[];
  /** Texts of native dialogs, such as `beforeunload`; they are accepted. */
  asked: string[];
  /** Grants permissions to pages, such as `clipboardReadWrite` (Browser.PermissionType of the debugging protocol). */
  allow(...permissions: string[]): Promise<void>;
  /** Opens a further page of the same profile: it shares the cookies. */
  tab(): Promise<Page>;
  /** Waits for a window that this page opens, and returns it. */
  popup(): Promise<Page>;
  close(): Promise<void>;
  /** Writes a PNG into test-artefacts/, or to an absolute path; in CI only with PICTURES=1. */
  screenshot(name: string): Promise<void>;
};

export type Browser = {
  /** Opens a page in a profile of its own, without shared cookies. */
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

/** Opens a page of this size in a new profile; it ends with the test file. */
export async function openPage(size: Size): Promise<Page> {
  return await (await startBrowser()).page(size);
}

/**
 * Starts a browser whose pages end with the test that opens them, or with the test file when it is a hook that opens them. `full`: with push and
 * notifications.
 */
export async function startBrowser({ full = false }: { full?: boolean } = {}): Promise<Browser> {
  const isShared = !full && SHELL !== undefined;
  const { address, browser } = isShared ? await sharedShell(SHELL) : await connected(await startForFile(FULL!));
  if (isShared && keptPages?.address !== address) keptPages = { address, pages: new KeptPages(address) };
  const kept = isShared ? keptPages!.pages : new KeptPages(address);
  const ends: (() => Promise<void>)[] = [];
  afterFile(async () => {
    await Promise.all(ends.map((end) => end()));
    browser.close();
  });
  const openAt = async (targetId: string, size: Size): Promise<Connection> => {
    const page = await pageAt(`ws://${new URL(address).host}/devtools/page/${targetId}`);
    await page.resize(size);
    return page;
  };
  /** Returns a page of an earlier test, or a new one. */
  const first = async (size: Size) => {
    const earlier = kept.take();
    if (earlier !== undefined)
      try {
        await browser.command('Target.activateTarget', { targetId: earlier.targetId });
        return { ...earlier, page: await openAt(earlier.targetId, size) };
      } catch {
        // It has crashed meanwhile.
      }
    const { browserContextId } = await browser.command('Target.createBrowserContext');
    const { targetId } = await browser.command('Target.createTarget', { url: 'about:blank', browserContextId });
    return { browserContextId, targetId, page: await openAt(targetId, size) };
  };
  return {
    page: async (size) => {
      const { browserContextId, targetId, page } = await first(size);
      const tabs = new Map([[targetId, page]]);
      let ended: Promise<void> | undefined;
      const end = () => {
        ended ??= (async () => {
          for (const one of tabs.values()) one.disconnect();
          const [left, ...others] = [...tabs.keys()];
          const closing = others.map((other) =>
            browser.command('Target.closeTarget', { targetId: other }).catch(() => {}),
          );
          await Promise.race([Promise.all(closing), browser.closed]);
          await Promise.all([...tabs.values()].map((one) => one.closed));
          if (left !== undefined) await kept.keep({ browserContextId, targetId: left }, browser);
        })();
        return ended;
      };
      ends.push(end);
      try {
        if (!isRepeatingSetup()) onTestFinished(end);
      } catch {
        // A hook opens it for several tests.
      }
      const whole = (id: string, one: Connection): Page => ({
        ...one,
        allow: async (...permissions) => {
          await browser.command('Browser.grantPermissions', { browserContextId, permissions });
        },
        tab: async () => {
          const { targetId: next } = await browser.command('Target.createTarget', {
            url: 'about:blank',
            browserContextId,
          });
          const tab = await openAt(next, size);
          tabs.set(next, tab);
          return whole(next, tab);
        },
        popup: async () => {
          for (;;) {
            const { targetInfos } = await browser.command('Target.getTargets');
            const found = targetInfos.find((other: { targetId: string; openerId?: string }) => other.openerId === id);
            if (found === undefined) {
              await pause(50);
              continue;
            }
            const popup = await openAt(found.targetId, size);
            tabs.set(found.targetId, popup);
            return whole(found.targetId, popup);
          }
        },
        close: async () => {
          if (tabs.size === 1) return await end();
          tabs.delete(id);
          await browser.command('Target.closeTarget', { targetId: id });
        },
      });
      return whole(targetId, page);
    },
  };
}

/** Pages that the shared browser keeps. */
let keptPages: { address: string; pages: KeptPages } | undefined;

type Connected = { address: string; browser: Devtools };
const connected = async (address: string): Promise<Connected> => ({ address, browser: await connectDevtools(address) });

let shell: Promise<string> | undefined;

/**
 * Connects to the browser that all test files of this process share, one after the other, each in its own contexts: starting one takes more processor
 * time than many test files. A crashed one is started again.
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

/** Starts a browser that ends with this process. Returns its address. */
function startShell(binary: string): Promise<string> {
  // Without a folder it keeps everything in memory. It ends when the pipes close, which happens however this process ends.
  const child = spawn(binary, [...FLAGS, '--remote-debugging-pipe', 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  // The browser must not keep this process alive.
  child.unref();
  for (const pipe of child.stdio) (pipe as Socket | null)?.unref();
  return debuggerAddress(child);
}

/** Starts a browser that ends with the test file. Returns its address. */
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
 * An expression that returns the middle of an element that is visible, still, enabled and not covered; else undefined. `pressed` then tells whether
 * the next press hit it: loading content may move it.
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

/** Limit of presses that miss because the element has moved. */
const MAX_MISSED = 3;

/** Limit of navigations that the page cancels: one that it begins itself after a click replaces one that a test begins. */
const MAX_CANCELLED = 3;

const pause = (ms: number) => new Promise((over) => setTimeout(over, ms));

/** Each transition draws the page ten times, and no test is about one. A thorough run has them. */
const MOTION = { name: 'prefers-reduced-motion', value: thorough ? 'no-preference' : 'reduce' };

type Connection = Omit<Page, 'allow' | 'tab' | 'popup' | 'close'> & { disconnect(): void };

async function pageAt(address: string): Promise<Connection> {
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
    // The page may be closed meanwhile.
    command('Page.handleJavaScriptDialog', { accept: true }).catch(() => {});
  });
  for (const domain of ['Page', 'Runtime', 'Log']) await command(`${domain}.enable`);
  await command('Emulation.setEmulatedMedia', { features: [MOTION] });

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
    const end = Date.now() + scaledTimeout(patienceMs);
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
    disconnect: devtools.close,
    complaints,
    asked,
    value,
    until,
    open: async (url) => {
      for (let cancelled = 0; cancelled < MAX_CANCELLED; cancelled++) {
        const { errorText, isDownload } = await command('Page.navigate', { url });
        if (errorText !== 'net::ERR_ABORTED' || isDownload) return;
      }
      throw new Error(`The navigation to ${url} was cancelled.`);
    },
    click: async (selector) => {
      for (let missed = 0; missed < MAX_MISSED; missed++) {
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
        // After a navigation the value is missing, and during one the evaluation fails.
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
      await command('Emulation.setEmulatedMedia', {
        features: [MOTION, { name: 'prefers-color-scheme', value: scheme }],
      });
    },
    offline: async (cut) => {
      await command('Network.enable');
      const speed = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
      await command('Network.emulateNetworkConditions', { offline: cut, ...speed });
    },
    authenticator: (options) => plugIn(devtools, options),
    screenshot: async (name) => {
      // Pictures are for people; elsewhere they only cost time.
      if (process.env.CI && !process.env.PICTURES) return;
      const path = name.startsWith('/') ? name : join(ARTEFACTS, name);
      mkdirSync(dirname(path), { recursive: true });
      const { data } = await command('Page.captureScreenshot');
      writeFileSync(path, Buffer.from(data, 'base64'));
    },
  };
}
