import { signInLink } from '../../../broker/auth/sign-in-link.ts';
import type { OwnerTable } from '../../../broker/store/tables/organisations.ts';
import type { TestAgent } from '../agent.ts';
import type { World } from '../world.ts';
import type { Page } from './chromium.ts';

export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 800 };

/** Makes a call that is held. Returns the id of its approval. */
export async function hold(agent: TestAgent, request: Record<string, unknown> = {}): Promise<string> {
  return agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', ...request });
}

export const linkOf = (world: World, id: string): string => `${world.running.baseUrl}/approve/${id}`;

/** Opens a link and waits until the request and the decision buttons are displayed. */
export async function openHeld(page: Page, world: World, id: string): Promise<void> {
  await page.open(linkOf(world, id));
  await page.until(
    `location.pathname.endsWith('${id}') && document.querySelector('.request-view') !== null && document.querySelector('.decide') !== null`,
  );
}

/** Opens a sign-in link, as an owner does. `signInByLink` of console.ts does the same without loading the page of the link, and the console after it. */
export async function openSignInLink(page: Page, world: World, owner: OwnerTable): Promise<void> {
  await page.open((await signInLink(world.running.broker, owner)).url);
  await page.until(`!location.pathname.startsWith('/console/sign-in')`);
}

/**
 * Ends the session of the browser, so that the following is done without one. Leaves the page first: the console navigates to sign-in when its session
 * ends, which would cancel a navigation that begins at that moment.
 */
export async function signOut(page: Page): Promise<void> {
  await page.open('about:blank');
  await page.until(`location.href === 'about:blank'`);
  await page.command('Network.clearBrowserCookies');
}

export const text = (page: Page, selector: string): Promise<string> =>
  page.value(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`);

/** Makes the approval page reload its data immediately, as it does when the tab becomes visible again. */
export const lookAgain = (page: Page): Promise<unknown> =>
  page.value(`document.dispatchEvent(new Event('visibilitychange'))`);

export const isDisabled = (page: Page, selector: string): Promise<boolean> =>
  page.value(`document.querySelector(${JSON.stringify(selector)}).disabled`);

/** Returns violations of the page's policy, and its errors; the status of checking for a session is expected. */
export const complaintsOf = (page: Page): string[] =>
  page.complaints.filter((complaint) => !/status of (401|404|409|410)/.test(complaint));

/** Takes a picture after animations have finished. */
export async function picture(page: Page, name: string): Promise<void> {
  await page.value(`Promise.all(document.getAnimations()
    .filter((one) => one.effect.getTiming().iterations !== Infinity).map((one) => one.finished.catch(() => {})))`);
  await page.screenshot(`${name}.png`);
}

/** Takes a picture at each size, light and dark; in CI only with PICTURES=1, as `screenshot` does. */
export async function pictures(page: Page, name: string): Promise<void> {
  if (process.env.CI && !process.env.PICTURES) return;
  for (const [where, size] of Object.entries({ phone: PHONE, desk: DESK }))
    for (const scheme of ['light', 'dark'] as const) {
      await page.resize(size, where === 'phone' ? 'phone' : 'window');
      await page.prefer(scheme);
      await picture(page, `${name}-${where}-${scheme}`);
    }
  await page.resize(PHONE, 'phone');
  await page.prefer('light');
}
