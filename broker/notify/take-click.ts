/** Verifies a request of Slack or Telegram and extracts the click. */
import type { Broker } from '../broker.ts';
import { findChannelById } from '../store/notice-channels.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import { takesClicks } from './buttons.ts';
import type { Sending } from './channel.ts';
import { type Click, clickInSlack, clickInTelegram, isFromSlack, isFromTelegram } from './clicks.ts';
import { sendingOn } from './deliver.ts';

export type ClickRequest = Parameters<typeof isFromSlack>[0];
/** `click`: undefined when the request is about something else than our buttons. */
export type TakenClick = { channel: NoticeChannelTable; sending: Sending; click: Click | undefined };

/** Undefined when the request is not authentic, or when this channel does not exist; the caller cannot distinguish the two. */
export async function takeClick(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'store' | 'vault' | 'outbound' | 'publicOutbound'>,
  kind: 'slack' | 'telegram',
  channelId: string,
  request: ClickRequest,
): Promise<TakenClick | undefined> {
  const channel = await findChannelById(broker.store.db, channelId);
  if (channel?.kind !== kind) return undefined;
  const sending = sendingOn(broker, channel);
  if (!takesClicks(kind, sending)) return undefined;
  const isTheirs =
    kind === 'slack' ? isFromSlack(request, sending, broker.clock()) : isFromTelegram(request, broker, channel.id);
  if (!isTheirs) return undefined;
  const click = kind === 'slack' ? clickInSlack(sending, request.body) : clickInTelegram(sending, request.body);
  return { channel, sending, click };
}
