/** Pictures for people: only with PICTURES=1, since no test depends on them. */
import type { Page } from './chromium.ts';
import { DESKTOP, PHONE } from './console.ts';

/** Takes pictures of the page in both colours, on a desktop and on a phone. It stays at the desktop size. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  for (const scheme of ['light', 'dark'] as const)
    for (const [at, size] of [
      ['window', DESKTOP],
      ['phone', PHONE],
    ] as const) {
      await page.prefer(scheme);
      await page.resize(size, at);
      await page.screenshot(`${name}-${scheme}-${at}.png`);
    }
  await page.resize(DESKTOP);
}
