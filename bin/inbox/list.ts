import { formatDuration } from '../../broker/console/static/shell/duration.js';
import type { ConnectionOptions } from '../connection.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';
import { findWaiting, reasonOf, requesterOf, titleOf, type Waiting, warningOf } from './waiting.ts';

const COLUMNS = [
  { title: 'ID' },
  { title: 'LEFT' },
  { title: 'WHO', least: 10, most: 28 },
  { title: 'WHAT', least: 20 },
  { title: 'HELD BY', least: 8 },
];

/** With less time left than this, in seconds, the list says that time is short. */
const SOON = 600;

/** Prints everything that waits, one line each. */
export async function listInbox(options: ConnectionOptions & { json?: boolean }): Promise<void> {
  const api = await openOwnerApi(options);
  const waiting = await findWaiting(api, await api.ask('GET', '/owner/me'));
  const shown = waiting.map(({ id, short, kind, item }) => ({ id, short_id: short, kind, item }));
  printResult(options, shown, () => (waiting.length === 0 ? [line`Nothing waits.`] : linesOf(api, waiting)));
}

const linesOf = ({ command }: OwnerApi, waiting: readonly Waiting[]): Line[] => [
  ...table(
    COLUMNS,
    waiting.map((one) => [
      styled('bold', one.short),
      leftOf(one),
      line`${warningOf(one)}${requesterOf(one)}`,
      titleOf(one),
      reasonOf(one),
    ]),
    terminalWidth(),
  ),
  line``,
  styled('quiet', `Look: ${command('inbox show ID')}   Decide: ${command('approve ID')}, or deny ID --reason TEXT`),
];

/** Returns the time left to decide; empty for items that do not expire. */
function leftOf({ kind, item }: Waiting): Line {
  const seconds = kind === 'person' ? null : item.expires_in_seconds;
  if (seconds === null) return line`-`;
  const words = formatDuration(seconds * 1000);
  return seconds < SOON ? styled('wait', `${words}!`) : line`${words}`;
}
