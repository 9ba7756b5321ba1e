/** The console as an owner uses it. */
import { signInLink } from '../../../broker/auth/sign-in-link.ts';
import type { OwnerTable } from '../../../broker/store/tables/organisations.ts';
import { jsonPost, send } from '../agent.ts';
import type { World } from '../world.ts';
import type { Browser, Page, Size } from './chromium.ts';

export const DESKTOP: Size = { width: 1280, height: 800 };
export const PHONE: Size = { width: 360, height: 740 };

/** Opens a page signed in by link as this owner, and waits until the inbox is loaded and live. */
export async function openConsole(world: World, browser: Browser, owner: OwnerTable, size = DESKTOP): Promise<Page> {
  const page = await browser.page(size);
  await signInByLink(page, world, owner);
  await page.open(`${world.running.baseUrl}/console`);
  await isLive(page);
  return page;
}

/**
 * Signs in with a link's token, and gives the page the cookie that the broker answers with. The page of the link would do the same for a fifth of the
 * processor time that opening the console takes; test/console/base.test.ts and test/approvals/page.test.ts use it.
 */
export async function signInByLink(page: Page, { running }: World, owner: OwnerTable): Promise<void> {
  const { url } = await signInLink(running.broker, owner);
  const answer = await send(`${running.baseUrl}/owner/sign-in`, jsonPost({ token: new URL(url).hash.slice(1) }));
  const [, name, value] = /^([^=]+)=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '') ?? [];
  if (name === undefined) throw new Error(`No session: ${answer.text}`);
  await page.command('Network.setCookie', { name, value, url: running.baseUrl, httpOnly: true, sameSite: 'Strict' });
}

/** Waits until the page is drawn and receives live updates. */
export const isLive = (page: Page): Promise<void> =>
  page.until(`document.querySelector('#liveness')?.dataset.live === 'true' && !document.querySelector('.loading')`);

/**
 * Opens an address of the console and waits until it is drawn. In an open console it navigates like a link, since reloading takes four times as long:
 * through a page that reads nothing, so that the content is read from the broker. Loads the address when the console is not open, or asks whether to
 * leave.
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

/** Returns the page's last announcement. */
export const said = (page: Page): Promise<string> => page.value(`document.querySelector('#said').textContent`);

/** Waits until the page announces this text. An announcement is matched only once: it stays for seconds, and each is a separate element. */
export const says = (page: Page, words: string): Promise<void> =>
  page.until(`((words) => {
    const last = document.querySelector('#said > *');
    if (!last?.textContent.includes(words) || last.heard?.includes(words)) return false;
    (last.heard ??= []).push(words);
    return true;
  })(${JSON.stringify(words)})`);

/** Waits until the first element that matches contains these words, with white space folded. */
export const has = (page: Page, selector: string, words: string): Promise<void> =>
  page.until(
    `document.querySelector(${JSON.stringify(selector)})?.innerText.replace(/\\s+/g, ' ').includes(${JSON.stringify(words)}) ?? false`,
  );

/** Presses Tab until the focus is on an element that matches. */
export async function tabTo(page: Page, selector: string): Promise<void> {
  for (let step = 0; step < 60; step++) {
    if (await page.value(`document.activeElement?.matches(${JSON.stringify(selector)}) ?? false`)) return;
    await page.press('Tab');
  }
  throw new Error(`Tab never came to ${selector}`);
}

/** Chooses an option of a select. */
export const choose = (page: Page, selector: string, value: string): Promise<void> =>
  page.value(`(() => {
    const found = document.querySelector(${JSON.stringify(selector)});
    found.value = ${JSON.stringify(value)};
    found.dispatchEvent(new Event('change', { bubbles: true }));
  })()`);

/** Replaces the text of a field by typing. */
export async function write(page: Page, selector: string, text: string): Promise<void> {
  await page.click(selector);
  await page.value(`document.querySelector(${JSON.stringify(selector)}).select?.()`);
  await page.type(text);
}

/** The number of pending cards. */
export const WAITING = `document.querySelectorAll('.card[data-state="waiting"]').length`;

/** Returns the selector of a held call's card. */
export const card = (approvalId: string): string => `[data-entry="approval-${approvalId}"]`;

/** Opens a held call, and waits until its request is displayed. */
export async function look(page: Page, approvalId: string): Promise<void> {
  await page.click(`${card(approvalId)} .opener`);
  await page.until(`document.querySelector('${card(approvalId)} .decide') !== null`);
}

/** Approves the open held call by clicks, including the confirmation. */
export async function approve(page: Page): Promise<void> {
  await page.click('.decide .approve');
  await page.click('dialog #approve');
}
