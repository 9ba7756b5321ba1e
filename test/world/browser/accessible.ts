/** Accessibility checks of a page: axe, whether it fits its window, and the order of its headings. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'vitest';
import type { Page } from './chromium.ts';

/** axe-core as script text for pages; read, not imported, because it runs in the page. */
const axe = () => readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Finding = { id: string; help: string; nodes: { target: string[]; failureSummary: string }[] };

/**
 * Returns axe's findings in the page as it is now: the rules of WCAG 2.2 A and AA, and best practices, such as the order of headings. `within`: a CSS
 * selector of the part to check.
 */
export async function axeFindings(page: Page, within = ':root'): Promise<string[]> {
  // The page's Content-Security-Policy blocks other scripts; the debugger's evaluation is exempt.
  if (!(await page.value<boolean>(`typeof globalThis.axe === 'object'`))) await page.value(`${axe()};0`);
  const findings = await page.value<Finding[]>(
    `axe.run(${JSON.stringify(within)}, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(
      ({ id, help, nodes }) => ({ id, help, nodes: nodes.map(({ target, failureSummary }) => ({ target, failureSummary })) })))`,
  );
  return findings.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}\n${nodes.map(({ target, failureSummary }) => `  ${target.join(' ')}: ${failureSummary}`).join('\n')}`,
  );
}

/** Returns elements that exceed the right edge of the window, or of an open dialog, its own scroll width first. */
export const overflowing = (page: Page): Promise<string[]> =>
  page.value(`[document.documentElement, ...document.querySelectorAll('dialog:modal')].flatMap((around) => {
    const { scrollWidth, clientWidth, clientLeft, tagName } = around;
    if (scrollWidth <= clientWidth) return [];
    const edge = around.getBoundingClientRect().left + clientLeft + clientWidth;
    const out = [...around.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > edge + 0.5);
    return [tagName.toLowerCase() + ' ' + scrollWidth + ' > ' + clientWidth, ...out.slice(0, 5).map((one) => one.tagName + '.' + one.className)];
  })`);

/**
 * Returns text that is unreadable: cut off at an edge without a mark (a scroll bar or an ellipsis), or on top of other text. Elements placed over a
 * page on purpose, such as a fixed bar, are ignored; with an open dialog, nothing behind it is checked. `within`: a CSS selector of the part to
 * check.
 */
export const unreadable = (page: Page, within = 'body'): Promise<string[]> =>
  page.value(`(() => {
    const words = (node) => JSON.stringify(node.data.trim().replace(/\\s+/g, ' ').slice(0, 40));
    const seen = [];
    const wrong = [];
    const walker = document.createTreeWalker(document.querySelector('dialog:modal') ?? document.querySelector(${JSON.stringify(within)}), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const closed = node.parentElement.closest('details:not([open])');
      if (closed && !closed.querySelector('summary').contains(node)) continue;
      if (node.data.trim() === '' || !node.parentElement.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      const around = [];
      for (let at = node.parentElement; at && at !== document.documentElement; at = at.parentElement)
        around.push([at, getComputedStyle(at)]);
      if (around.some(([at, { position }]) => /sticky|absolute|fixed/.test(position) && !at.matches('dialog'))) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        let { left, right, top, bottom } = rect;
        let isMarked = false;
        for (const [at, { overflowX, overflowY, textOverflow, webkitLineClamp }] of around) {
          if (overflowX === 'visible' && overflowY === 'visible') continue;
          const edge = at.getBoundingClientRect();
          isMarked ||= /auto|scroll/.test(overflowX) || textOverflow === 'ellipsis' || webkitLineClamp !== 'none' || edge.width <= 1;
          if (!isMarked && right > edge.right + 1) wrong.push('cut off: ' + words(node));
          [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
          [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
        }
        // Boxes of lines may touch where no letter does.
        const slack = (bottom - top) * 0.2;
        if (right - left > 2 && bottom - top > 2) seen.push({ node, left: left + 1, right: right - 1, top: top + slack, bottom: bottom - slack });
      }
    }
    for (const [at, one] of seen.entries())
      for (const other of seen.slice(at + 1))
        if (one.node !== other.node && one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom)
          wrong.push(words(one.node) + ' lies on ' + words(other.node));
    return [...new Set(wrong)].slice(0, 8);
  })()`);

/** Colours do not depend on the size, nor the layout on the colours, so each is checked once. */
const LOOKS = [
  { size: { width: 1280, height: 800 }, as: 'window', scheme: 'dark' },
  { size: { width: 360, height: 740 }, as: 'phone', scheme: 'light' },
] as const;
const SMALLEST = { width: 320, height: 568 };

/** How many parts of a page were checked; it selects the colours of the next one. */
const partsSeen = new WeakMap<Page, number>();

/**
 * Runs all checks on the page: on a desktop in dark and on a phone in light, and in a window of 320 pixels. The phone size stays. Of a part of a
 * page, such as a dialog, axe checks only the phone: it computes the colours of the whole page each time, and all dialogs share theirs. Parts
 * alternate between light and dark.
 */
export async function expectAccessible(page: Page, name: string, within?: string): Promise<void> {
  const seen = partsSeen.get(page) ?? 0;
  if (within) partsSeen.set(page, seen + 1);
  for (const look of LOOKS) {
    const { size, as } = look;
    const scheme = within && as === 'phone' ? LOOKS[seen % 2]!.scheme : look.scheme;
    await page.resize(size, as);
    await page.prefer(scheme);
    // Colours in the middle of a transition would be misjudged.
    await page.until(
      `document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getTiming().iterations === Infinity)`,
    );
    const where = `${name} at ${size.width}, ${scheme}`;
    expect(await overflowing(page), where).toEqual([]);
    expect(await unreadable(page, within), where).toEqual([]);
    if (!within || as === 'phone') expect(await axeFindings(page, within), where).toEqual([]);
  }
  await page.resize(SMALLEST, 'phone');
  expect(await overflowing(page), `${name} at ${SMALLEST.width}`).toEqual([]);
  expect(await unreadable(page, within), `${name} at ${SMALLEST.width}`).toEqual([]);
}
