/** Key presses for the debugging protocol's Input domain. */
import type { Devtools } from './devtools.ts';

const MODIFIERS: Record<string, number> = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

/** Named keys: their code, their number, and the text that they type, if any. */
const NAMED: Record<string, [code: string, number: number, text?: string]> = {
  Enter: ['Enter', 13, '\r'],
  Tab: ['Tab', 9],
  Escape: ['Escape', 27],
  Space: ['Space', 32, ' '],
  Backspace: ['Backspace', 8],
  ArrowUp: ['ArrowUp', 38],
  ArrowDown: ['ArrowDown', 40],
  ArrowLeft: ['ArrowLeft', 37],
  ArrowRight: ['ArrowRight', 39],
  Home: ['Home', 36],
  End: ['End', 35],
};

/** Presses and releases a key: `Enter`, `a`, `?`, `Shift+Tab`, `Control+a`. */
export async function press(page: Devtools, combination: string): Promise<void> {
  const names = combination === '+' ? ['+'] : combination.split('+');
  const key = names.pop()!;
  const modifiers = names.reduce((sum, name) => sum + (MODIFIERS[name] ?? 0), 0);
  const upper = key.toUpperCase();
  const [code, windowsVirtualKeyCode, written] = NAMED[key] ?? [
    /[a-z]/i.test(key) ? `Key${upper}` : '',
    upper.charCodeAt(0),
    key,
  ];
  const text = modifiers & (MODIFIERS.Control! | MODIFIERS.Meta! | MODIFIERS.Alt!) ? undefined : written;
  const event = { key: key === 'Space' ? ' ' : key, code, windowsVirtualKeyCode, modifiers };
  const down = { ...event, type: text === undefined ? 'rawKeyDown' : 'keyDown', ...(text !== undefined && { text }) };
  await page.command('Input.dispatchKeyEvent', down);
  await page.command('Input.dispatchKeyEvent', { ...event, type: 'keyUp' });
}
