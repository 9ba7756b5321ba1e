/** Whether a page can be used by everybody: what axe finds, whether it fits its window, and the order of its headings. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'vitest';
import type { Page } from './chromium.ts';

/** axe-core as a script for pages. It is read, not imported: it is no module of ours. */
const axe = () => readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Finding = { id: string; help: string; nodes: { target: string[]; failureSummary: string }[] };

/**
 * What axe finds in the page as it is now: the rules of WCAG 2.2 A and AA, and best practices, such as the order of headings.
 * `within`: a CSS selector of the part that is looked at.
 */
export async function axeFindings(page: Page, within = ':root'): Promise<string[]> {
  // A page's policy lets no script in but its own; what the debugger evaluates is no script of the page.
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

/** Elements that stick out of the window at its right, or out of a question that is open, its own scroll width first. */
export const overflowing = (page: Page): Promise<string[]> =>
  page.value(`[document.documentElement, ...document.querySelectorAll('dialog:modal')].flatMap((around) => {
    const { scrollWidth, clientWidth, clientLeft, tagName } = around;
    if (scrollWidth <= clientWidth) return [];
    const edge = around.getBoundingClientRect().left + clientLeft + clientWidth;
    const out = [...around.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > edge + 0.5);
    return [tagName.toLowerCase() + ' ' + scrollWidth + ' > ' + clientWidth, ...out.slice(0, 5).map((one) => one.tagName + '.' + one.className)];
  })`);

/**
 * Text that nobody can read: cut off at an edge without a mark (a scroll bar or an ellipsis), or on top of other text. What is placed over a
 * page on purpose, such as a bar that stays, is left out; of a question that is open, nothing behind it is looked at. `within`: a CSS
 * selector of the part that is.
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

/** Colours do not depend on the size, nor the layout on the colours: each of both is looked at once. */
const LOOKS = [
  { size: { width: 1280, height: 800 }, as: 'window', scheme: 'dark' },
  { size: { width: 360, height: 740 }, as: 'phone', scheme: 'light' },
] as const;
const SMALLEST = { width: 320, height: 568 };

/** How many parts of a page were looked at, by which the colours of the next one are chosen. */
const partsSeen = new WeakMap<Page, number>();

/**
 * Holds the page as it is now to all of it, on a desk in dark and on a phone in light, and to a window of 320 pixels. The phone stays. Of a part of a page, such
 * as a dialog, axe looks once, on the phone: it works out the colours of the whole page each time, and all dialogs share theirs. One is seen in light, the next in dark.
 */
export async function expectAccessible(page: Page, name: string, within?: string): Promise<void> {
  const seen = partsSeen.get(page) ?? 0;
  if (within) partsSeen.set(page, seen + 1);
  for (const look of LOOKS) {
    const { size, as } = look;
    const scheme = within && as === 'phone' ? LOOKS[seen % 2]!.scheme : look.scheme;
    await page.resize(size, as);
    await page.prefer(scheme);
    // A colour on its way is no colour that anybody reads.
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
