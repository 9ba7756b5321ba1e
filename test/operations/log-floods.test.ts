import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';

let lines: Record<string, unknown>[] = [];
const written = { write: (line: string) => void lines.push(JSON.parse(line)) };
const LEFT_OUT = 'repeated lines with this text were suppressed in the last 10 s';

beforeEach(() => {
  lines = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('of a flood of identical lines the first 50 are written, and then their number', () => {
  const log = makeLog('info', written);
  for (let i = 0; i < 1_000; i++) {
    log.error({ err: new Error(`no ${i}`), auditId: `${i}` }, 'an outcome is unknown');
    if (i < 60) log.warn('something else');
  }
  const saying = (text: string) => lines.filter(({ msg }) => msg === text);
  expect(saying('an outcome is unknown').map(({ auditId }) => auditId)).toEqual(
    Array.from({ length: 50 }, (_, i) => `${i}`),
  );
  expect(saying(LEFT_OUT)).toEqual([]);
  vi.advanceTimersByTime(10_000);
  expect(saying(LEFT_OUT)).toMatchObject([
    { level: 'error', text: 'an outcome is unknown', leftOut: 950 },
    { level: 'warn', text: 'something else', leftOut: 10 },
  ]);
  log.error('an outcome is unknown');
  expect(saying('an outcome is unknown')).toHaveLength(51);
  vi.advanceTimersByTime(60_000);
  expect(saying(LEFT_OUT)).toHaveLength(2);
});

test('a few lines, and lines of a log level that was set explicitly, are all written', () => {
  const log = makeLog('debug', written);
  for (let i = 0; i < 50; i++) log.info({ i }, 'a change');
  for (let i = 0; i < 500; i++) log.debug({ i }, 'a detail');
  vi.advanceTimersByTime(10_000);
  expect(lines).toHaveLength(550);
});

test('different texts do not fill memory, and are counted together', () => {
  const log = makeLog('info', written);
  for (let i = 0; i < 5_000; i++) log.warn(`text ${i}`);
  expect(lines).toHaveLength(1_050);
  vi.advanceTimersByTime(10_000);
  expect(lines.at(-1)).toMatchObject({ text: 'many different texts', leftOut: 3_950 });
});
