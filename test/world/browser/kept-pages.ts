/** Pages of earlier tests, emptied, for later ones. */
import { connectDevtools, type Devtools } from './devtools.ts';

/** The only page of a profile. */
export type Target = { browserContextId: string; targetId: string };

/** More than most tests have open at a time; each is a process that keeps its memory. */
const MAX_ENTRIES = 3;

/**
 * Keeps the pages of one browser: loading the console into a new page takes twice the processor time, since it has a new process, which has
 * compiled nothing. A kept page has no cookies, no storage, no history and no settings of the debugging protocol.
 */
export class KeptPages {
  readonly #address: string;
  readonly #kept: Target[] = [];

  /** `address`: of the browser. */
  constructor(address: string) {
    this.#address = address;
  }

  take(): Target | undefined {
    return this.#kept.pop();
  }

  /** Empties a page and keeps it. Its connections must be closed: what they have set ends with them. Disposes of what it does not keep. */
  async keep(target: Target, browser: Devtools): Promise<void> {
    const { browserContextId, targetId } = target;
    if (this.#kept.length < MAX_ENTRIES)
      try {
        await empty(target, `ws://${new URL(this.#address).host}/devtools/page/${targetId}`, browser);
        this.#kept.push(target);
        return;
      } catch {
        // The page has crashed, or its browser has.
      }
    await Promise.race([
      browser.command('Target.disposeBrowserContext', { browserContextId }).catch(() => {}),
      browser.closed,
    ]);
  }
}

const SCHEMES = /^https?:/;

async function empty({ browserContextId }: Target, address: string, browser: Devtools): Promise<void> {
  const page = await connectDevtools(address);
  const { command } = page;
  const work = async () => {
    const left = new Promise<void>((loaded) => page.on('Page.loadEventFired', () => loaded()));
    page.on(
      'Page.javascriptDialogOpening',
      () => void command('Page.handleJavaScriptDialog', { accept: true }).catch(() => {}),
    );
    page.on('Fetch.requestPaused', ({ requestId }) => {
      const responseHeaders = [{ name: 'content-type', value: 'text/html' }];
      void command('Fetch.fulfillRequest', { requestId, responseCode: 200, responseHeaders, body: '' }).catch(() => {});
    });
    await command('Page.enable');
    const { result } = await command('Runtime.evaluate', {
      expression: `(() => { try { sessionStorage.clear(); } catch {} return location.href; })()`,
      returnByValue: true,
    });
    const { protocol, hostname, origin } = new URL(result.value);
    if (!SCHEMES.test(protocol)) throw new Error('no page of a server');
    // An empty page of the same host: another host has another process.
    await command('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
    await command('Page.navigate', { url: `${protocol}//${hostname}/` });
    await left;
    await Promise.all([
      browser.command('Storage.clearCookies', { browserContextId }),
      browser.command('Browser.resetPermissions', { browserContextId }),
      command('Storage.clearDataForOrigin', { origin, storageTypes: 'all' }),
      command('Page.resetNavigationHistory'),
    ]);
  };
  try {
    const lost = Promise.race([page.closed, browser.closed]).then(() => {
      throw new Error('The page has gone.');
    });
    await Promise.race([work(), lost, late()]);
  } finally {
    page.close();
    await page.closed;
  }
}

/** Fails after a time in which every page answers. */
const late = () =>
  new Promise<never>((_, failed) => setTimeout(() => failed(new Error('The page does not answer.')), 5_000).unref());
