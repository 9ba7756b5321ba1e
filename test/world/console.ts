/** The console as an owner has it open. */
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { Browser, Page, Size } from './chromium.ts';
import type { World } from './world.ts';

export const DESKTOP: Size = { width: 1280, height: 800 };
export const PHONE: Size = { width: 360, height: 740 };

/** A page of its own, signed in by link as this owner, once the inbox was read and hears news. */
export async function openConsole(world: World, browser: Browser, owner: OwnerTable, size = DESKTOP): Promise<Page> {
  const page = await browser.page(size);
  await page.open((await signInLink(world.running.broker, owner)).url);
  await isLive(page);
  return page;
}

/** Waits until the page was drawn and hears news. */
export const isLive = (page: Page): Promise<void> =>
  page.until(`document.querySelector('#liveness')?.dataset.live === 'true' && !document.querySelector('.loading')`);

/**
 * Goes to an address of the console and waits until it is drawn. Where the console is open, it goes as links do, since to load it again takes four times as
 * much: by way of a page that reads nothing, so that what is drawn then is read from the broker. Loads it where it is not open, or where it asks whether to leave.
 */
export async function goTo(page: Page, url: string): Promise<void> {
  const went = await page.value<boolean>(`(async () => {
    const to = new URL(${JSON.stringify(url)});
    if (to.origin !== location.origin || !/^\\/console(?!\\/sign-in)/.test(to.pathname) || document.querySelector('#liveness')?.dataset.live !== 'true') return false;
    const between = () => document.querySelector('#receipt-text') !== null;
    for (const place of ['/console/receipt', to.href]) {
      history.pushState(null, '', place);
      dispatchEvent(new PopStateEvent('popstate'));
      for (let turn = 0; between() !== (place !== to.href); turn++) {
        if (turn === 50) return false;
        await new Promise((over) => setTimeout(over, 5));
      }
    }
    return true;
  })()`);
  if (!went) await page.open(url);
  await isLive(page);
}

/** The last thing that the page said. */
export const said = (page: Page): Promise<string> => page.value(`document.querySelector('#said').textContent`);

/**
 * Waits until the page says this. What was waited for once is not heard a second time: an announcement stays for seconds,
 * and each is an element of its own.
 */
export const says = (page: Page, words: string): Promise<void> =>
  page.until(`((words) => {
    const last = document.querySelector('#said > *');
    if (!last?.textContent.includes(words) || last.heard?.includes(words)) return false;
    (last.heard ??= []).push(words);
    return true;
  })(${JSON.stringify(words)})`);

/** How many cards wait. */
export const WAITING = `document.querySelectorAll('.card[data-state="waiting"]').length`;

/** The card of a held call, as a selector. */
export const card = (approvalId: string): string => `[data-entry="approval-${approvalId}"]`;

/** Opens a held call, and waits until its request is on the screen. */
export async function look(page: Page, approvalId: string): Promise<void> {
  await page.click(`${card(approvalId)} .opener`);
  await page.until(`document.querySelector('${card(approvalId)} .decide') !== null`);
}

/** Approves the held call that is open by clicks, as it asks once more. */
export async function approve(page: Page): Promise<void> {
  await page.click('.decide .approve');
  await page.click('dialog #approve');
}
