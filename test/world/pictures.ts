/** Pictures for people to look at: with PICTURES=1 alone, since nothing is held to them. */
import type { Page } from './chromium.ts';
import { DESKTOP, PHONE } from './console.ts';

/** The page as it is now, in both colours, on a desk and on a phone. It stays on a desk. */
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
