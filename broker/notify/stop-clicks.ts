/** Removes the registration of a removed channel for clicks at its service. */
import type { Broker } from '../broker.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import { clicksUrl } from './buttons.ts';
import { attempt, sendingOn } from './deliver.ts';
import { kindOf } from './kinds.ts';

/**
 * Call it once the channel is removed, with the channel as it was. A failure is only logged: clicks for a channel that does not exist are refused
 * anyway.
 */
export async function stopClicks(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'log' | 'store' | 'vault' | 'outbound' | 'publicOutbound'>,
  channel: NoticeChannelTable,
): Promise<void> {
  const { stopListening } = kindOf(channel.kind) ?? {};
  if (!stopListening || channel.secret === null) return;
  const sent = await attempt(broker, () => stopListening(sendingOn(broker, channel), clicksUrl(broker, channel)));
  if (sent.kind !== 'sent')
    broker.log.warn({ channel: channel.id, why: sent.why }, 'the webhook of a removed channel could not be removed');
}
