/** Corrects a held call before it is decided, and shows the corrected call. */
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { readJsonObject } from '../json-option.ts';
import { openOwnerApi } from '../owner-api.ts';
import { line } from '../terminal/line.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { formatItem, howToDecide, readWaitingItem } from './show.ts';
import { findWaiting, pickWaiting } from './waiting.ts';

export type CorrectOptions = ConnectionOptions & { body?: string; endpoint?: string; json?: boolean };

/** Sends the hash of the request that was read, so that a concurrent correction by somebody else is not overwritten. */
export async function correctCall(id: string, options: CorrectOptions): Promise<void> {
  const { endpoint } = options;
  const data = options.body === undefined ? undefined : readJsonObject('--body', options.body);
  if (data === undefined && endpoint === undefined)
    throw new WrongUsage('Say what it shall be: --body, or --endpoint.');
  const api = await openOwnerApi(options);
  const me = await api.ask('GET', '/owner/me');
  const one = pickWaiting(api, await findWaiting(api, me), id);
  const before = await readWaitingItem(api, one);
  if (before.kind !== 'approval') throw new CommandFailed('Only held calls can be corrected.');
  await api.ask('POST', `/owner/approvals/${before.id}/correct`, {
    request_hash: before.item.request_hash,
    ...(data && { data }),
    ...(endpoint !== undefined && { endpoint }),
  });
  const entry = await readWaitingItem(api, one);
  printResult(options, entry.item, () => [
    ...formatItem(entry, terminalWidth(), me.base_url),
    line``,
    ...howToDecide(api, entry, me.base_url),
  ]);
}
