/** `agent-broker activity`: prints audit rows, newest last as terminals are read, and follows new ones. */
import type { AuditRow } from '../../broker/console/answers.ts';
import type { ConnectionOptions } from '../connection.ts';
import { agentIdOf } from '../find-agent.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { line } from '../terminal/line.ts';
import { jsonText, printLines, terminalWidth } from '../terminal/output.ts';
import { followRows } from './follow.ts';
import { type RowFilter, readOwners, readRows } from './read-rows.ts';
import { lineOfRow } from './row-line.ts';

export type ActivityOptions = ConnectionOptions & RowFilter & { json?: boolean; follow?: boolean; limit: number };

/** Builds the filter from options; an agent given by name is resolved to its id. */
export async function filterOf(api: OwnerApi, options: RowFilter): Promise<RowFilter> {
  const { agent, platform, result, since, text } = options;
  return {
    ...(agent !== undefined && { agent: await agentIdOf(api, agent) }),
    ...(platform !== undefined && { platform }),
    ...(result !== undefined && { result }),
    ...(since !== undefined && { since }),
    ...(text !== undefined && { text }),
  };
}

export async function showActivity(options: ActivityOptions): Promise<void> {
  const { json, follow, limit } = options;
  const api = await openOwnerApi(options);
  const filter = await filterOf(api, options);
  const print = async (asked: OwnerApi, rows: readonly AuditRow[]): Promise<void> => {
    if (json) {
      process.stdout.write(rows.map((row) => `${jsonText(row)}\n`).join(''));
      return;
    }
    const owners = await readOwners(asked);
    printLines(rows.map((row) => lineOfRow(row, owners, terminalWidth())));
  };
  const rows = (await readRows(api, filter, limit)).toReversed();
  // While following, a call is printed once, when it has ended.
  const shown = follow ? rows.filter(({ state }) => state === 'final') : rows;
  await print(api, shown);
  if (!follow) {
    if (rows.length === 0 && !json) printLines([line`No rows match.`]);
    return;
  }
  const leaving = new AbortController();
  process.once('SIGINT', () => leaving.abort());
  // The reader of the output may end first, as `head` does.
  process.stdout.on('error', () => leaving.abort());
  await followRows({
    connect: () => openOwnerApi(options),
    filter,
    printed: rows,
    print,
    tell: (words) => process.stderr.write(`${words}\n`),
    signal: leaving.signal,
  });
}
