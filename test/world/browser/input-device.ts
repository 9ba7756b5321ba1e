/** Operates a page with the mouse only, or with the keyboard only. */
import type { Page } from './chromium.ts';

export type InputDevice = {
  page: Page;
  /** Presses a button, follows a link, ticks a box, opens what can be opened. */
  use(selector: string): Promise<void>;
  /** Types into a field, replacing its text. */
  fill(selector: string, text: string): Promise<void>;
  /** Selects in a list by value. */
  choose(selector: string, value: string): Promise<void>;
};

/** More focusable elements than any page has. */
const MAX_STEPS = 150;

/**
 * Returns where the focus is: whether it is the target, whether the target lies before it, and why it would not be visible. An outline shows the
 * focus; elements that fill the page (`main`, a dialog) need none.
 */
const LOOK = `(selector) => {
  const target = document.querySelector(selector);
  const at = document.activeElement;
  const { width, height, top, bottom } = at.getBoundingClientRect();
  const shows = ({ outlineStyle, outlineWidth }) => outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
  // The browser shows it by itself within a time or a date.
  const isPlace = at === document.body || at.matches('main, dialog, h1, h2, [type="time"], [type="date"]');
  // A line of a list shows it around all of the line, and a chip around its label.
  const isShown = isPlace || shows(getComputedStyle(at)) || shows(getComputedStyle(at, '::after')) || shows(getComputedStyle(at.closest('label') ?? at));
  const isSeen = isPlace || (width > 0 && height > 0 && bottom > 0 && top < innerHeight);
  const group = target?.type === 'radio' && at.type === 'radio' && at.name === target.name;
  return {
    isThere: target !== null && (at === target || group),
    isBefore: target !== null && at !== document.body && Boolean(at.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_PRECEDING),
    wrong: isShown && isSeen ? '' : 'the focus is not visible at ' + at.outerHTML.slice(0, 120),
    where: at.outerHTML.slice(0, 120),
  };
}`;

type Looked = { isThere: boolean; isBefore: boolean; wrong: string; where: string };

/** Uses Tab, Shift+Tab, Enter, Space, the arrows and letters. Throws when the focus is not visible, or never reaches the target. */
export function keyboard(page: Page): InputDevice {
  const look = (selector: string) => page.value<Looked>(`(${LOOK})(${JSON.stringify(selector)})`);
  const to = async (selector: string) => {
    await page.until(
      `document.querySelector(${JSON.stringify(selector)}) !== null && !document.querySelector(${JSON.stringify(selector)}).disabled`,
    );
    let before = '';
    let stays = 0;
    for (let step = 0; step < MAX_STEPS; step++) {
      const { isThere, isBefore, wrong, where } = await look(selector);
      if (wrong) throw new Error(wrong);
      if (isThere) return;
      stays = where === before && !where.startsWith('<body') ? stays + 1 : 0;
      // A time or a date has several positions of its own.
      if (stays > 5) throw new Error(`the focus is trapped at ${where}`);
      before = where;
      await page.press(isBefore ? 'Shift+Tab' : 'Tab');
    }
    throw new Error(`the focus never comes to ${selector}`);
  };
  return {
    page,
    use: async (selector) => {
      await to(selector);
      const kind = await page.value<string>(
        `(({ type, localName }) => localName === 'input' ? type : localName)(document.querySelector(${JSON.stringify(selector)}))`,
      );
      if (kind === 'radio') {
        for (let step = 0; step < MAX_STEPS; step++) {
          if (await page.value(`document.querySelector(${JSON.stringify(selector)}).checked`)) return;
          await page.press('ArrowDown');
        }
        throw new Error(`the arrows never come to ${selector}`);
      }
      await page.press(kind === 'checkbox' ? 'Space' : 'Enter');
    },
    fill: async (selector, text) => {
      await to(selector);
      await page.press('Control+a');
      await page.type(text);
    },
    choose: async (selector, value) => {
      await to(selector);
      await page.press('Home');
      for (let step = 0; step < MAX_STEPS; step++) {
        if (await page.value(`document.querySelector(${JSON.stringify(selector)}).value === ${JSON.stringify(value)}`))
          return;
        await page.press('ArrowDown');
      }
      throw new Error(`${selector} has no ${value}`);
    },
  };
}

/** Uses clicks. List values are set directly, because the browser draws the list outside of the page. */
export const mouse = (page: Page): InputDevice => ({
  page,
  use: (selector) => page.click(selector),
  fill: async (selector, text) => {
    await page.click(selector);
    await page.value(`document.querySelector(${JSON.stringify(selector)}).select()`);
    await page.type(text);
  },
  choose: async (selector, value) => {
    await page.click(selector);
    await page.press('Escape');
    const is = await page.value(
      `((list) => { list.value = ${JSON.stringify(value)}; list.dispatchEvent(new Event('change', { bubbles: true })); return list.value; })(document.querySelector(${JSON.stringify(selector)}))`,
    );
    if (is !== value) throw new Error(`${selector} has no ${value}`);
  },
});
