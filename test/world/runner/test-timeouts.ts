/** Scales the timeouts of tests. CI shares its machine with others, and is slow for minutes. */
import { expect, vi } from 'vitest';

const FACTOR = process.env.CI ? 3 : 1;

export const scaledTimeout = (milliseconds: number): number => FACTOR * milliseconds;

/** Scales the timeouts of polling helpers, which are meant for an idle machine. Files of one worker share these helpers: they are replaced once. */
export function waitLonger(): void {
  if (FACTOR === 1 || 'waitsLonger' in expect.poll) return;
  const { poll } = expect;
  const { waitFor, waitUntil } = vi;
  // Without a timeout that of vitest.config.ts applies.
  const polls: typeof poll = (what, options = {}) => poll(what, scaled(options));
  expect.poll = Object.assign(polls, { waitsLonger: true });
  vi.waitFor = (what, options = {}) =>
    waitFor(what, typeof options === 'number' ? scaledTimeout(options) : scaled(options));
  vi.waitUntil = (what, options = {}) =>
    waitUntil(what, typeof options === 'number' ? scaledTimeout(options) : scaled(options));
}

const scaled = <T extends { timeout?: number }>(options: T): T =>
  options.timeout === undefined ? options : { ...options, timeout: scaledTimeout(options.timeout) };
