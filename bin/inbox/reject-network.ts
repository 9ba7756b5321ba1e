/** Rejects all agents that registered themselves from the network of one of them, so that a list flooded by a stranger need not be read item by item. */
import { commandWith } from '../command-with.ts';

import { CommandFailed, WrongUsage } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { line, styled } from '../terminal/line.ts';
import { printLines, printResult } from '../terminal/output.ts';
import { canAsk, confirm } from '../terminal/prompt.ts';
import type { DecideOptions } from './decide.ts';
import { findWaiting, pickWaiting, requesterOf } from './waiting.ts';

/** Rejects the networks of these registrations. Throws WrongUsage, CommandFailed; rejects nothing before all ids were found. */
export async function rejectNetworks(
  ids: readonly string[],
  options: DecideOptions & { reason?: string },
): Promise<void> {
  if (options.reason !== undefined)
    throw new WrongUsage('No reason can be sent to an agent that registers itself: leave out --reason.');
  if (!options.yes && (options.json || !canAsk()))
    throw new WrongUsage(
      `Without a terminal to ask at, add --yes. Look first: ${commandWith(options, 'inbox show ID')}`,
    );
  const api = await openOwnerApi(options);
  const waiting = await findWaiting(api, await api.ask('GET', '/owner/me'));
  const networks = new Set(
    ids.map((id) => {
      const one = pickWaiting(api, waiting, id);
      if (one.kind !== 'registration')
        throw new CommandFailed(`--network says nothing about ${id}: it is no agent that registers itself.`);
      return one.item.network;
    }),
  );
  const rejected: string[] = [];
  for (const network of networks) {
    const theirs = waiting.filter((one) => one.kind === 'registration' && one.item.network === network);
    if (!options.yes) {
      printLines(theirs.map((one) => line`${styled('bold', one.short)}  ${requesterOf(one)}`));
      if (!(await confirm(`Reject all that wait from ${network}?`))) continue;
    }
    for (let more = true; more; ) {
      const now = await api.ask('POST', '/owner/registrations/reject', { network });
      rejected.push(...now.rejected);
      more = now.remaining;
    }
  }
  printResult(options, rejected, () => [line`Rejected ${String(rejected.length)}.`]);
}
