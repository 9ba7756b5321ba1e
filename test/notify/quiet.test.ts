/** The end of quiet hours: overnight, on some days, and across daylight saving changes. */
import { expect, test } from 'vitest';
import { quietUntil } from '../../broker/notify/quiet.ts';

const night = { from: '22:00', to: '07:00', zone: 'Europe/Berlin' };
const WORKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri'] as ('mon' | 'fri')[];
const weekend = { from: '00:00', to: '00:00', zone: 'UTC', days: ['sat', 'sun'] as ('sat' | 'sun')[] };

test.each([
  ['in the evening', night, '2026-01-14T22:30:20+01:00', '2026-01-15T07:00:00+01:00'],
  ['in the morning', night, '2026-01-14T06:59:59+01:00', '2026-01-14T07:00:00+01:00'],
  ['at the end', night, '2026-01-14T07:00:00+01:00', undefined],
  ['by day', night, '2026-01-14T12:00:00+01:00', undefined],
  ['when the clocks go forward', night, '2026-03-28T23:00:00+01:00', '2026-03-29T07:00:00+02:00'],
  ['when the clocks go back', night, '2026-10-24T23:00:00+02:00', '2026-10-25T07:00:00+01:00'],
  ['on a day without quiet hours', { ...night, days: WORKDAYS }, '2026-01-17T23:00:00+01:00', undefined],
  [
    'in the night after a day with quiet hours',
    { ...night, days: WORKDAYS },
    '2026-01-17T06:00:00+01:00',
    '2026-01-17T07:00:00+01:00',
  ],
  ['at noon', { from: '12:00', to: '13:00', zone: 'UTC' }, '2026-01-14T12:30:00Z', '2026-01-14T13:00:00Z'],
  [
    'when the end is an hour that does not exist',
    { ...night, to: '02:30' },
    '2026-03-29T01:40:00+01:00',
    '2026-03-29T03:00:00+02:00',
  ],
  [
    'when the end is a midnight that does not exist',
    { from: '22:00', to: '00:00', zone: 'America/Santiago' },
    '2026-09-05T23:50:00-04:00',
    '2026-09-06T01:00:00-03:00',
  ],
  [
    'when the end comes twice',
    { from: '01:00', to: '02:30', zone: 'Europe/Berlin' },
    '2026-10-25T02:10:00+01:00',
    '2026-10-25T02:30:00+01:00',
  ],
  ['over whole days', weekend, '2026-01-17T09:00:00Z', '2026-01-19T00:00:00Z'],
])('%s', (_when, quiet, now, end) => {
  const found = quietUntil(quiet, Date.parse(now));
  expect(found && new Date(found).toISOString()).toBe(end && new Date(end).toISOString());
});

test('quiet hours that cover all days end nevertheless', () => {
  expect(quietUntil({ from: '00:00', to: '00:00', zone: 'UTC' }, 0)).toBeLessThan(9 * 86_400_000);
});
