/** How long tests wait for what has to come. CI shares its machine with others, and is slow for minutes. */
import { expect, vi } from 'vitest';

const FACTOR = process.env.CI ? 3 : 1;

export const patience = (milliseconds: number): number => FACTOR * milliseconds;

/** Of the helpers that poll, whose timeouts are for a machine that does nothing else. Files of one worker share them: they are replaced once. */
export function waitLonger(): void {
  if (FACTOR === 1 || 'waitsLonger' in expect.poll) return;
  const { poll } = expect;
  const { waitFor, waitUntil } = vi;
  // What has no timeout takes that of vitest.config.ts.
  const polls: typeof poll = (what, options = {}) => poll(what, scaled(options));
  expect.poll = Object.assign(polls, { waitsLonger: true });
  vi.waitFor = (what, options = {}) => waitFor(what, typeof options === 'number' ? patience(options) : scaled(options));
  vi.waitUntil = (what, options = {}) =>
    waitUntil(what, typeof options === 'number' ? patience(options) : scaled(options));
}

const scaled = <T extends { timeout?: number }>(options: T): T =>
  options.timeout === undefined ? options : { ...options, timeout: patience(options.timeout) };
