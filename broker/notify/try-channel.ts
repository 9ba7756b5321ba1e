/** Sends a test notice immediately, for an owner who waits for the result. */
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { noteFailing, noteMended } from '../store/notice-channels.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import { clicksUrl, takesClicks } from './buttons.ts';
import type { Sent } from './channel.ts';
import { telegramSecret } from './clicks.ts';
import { attempt, sendingOn } from './deliver.ts';
import { kindOf } from './kinds.ts';
import type { Message } from './message.ts';

const testMessage = (baseUrl: string, name: string): Message => ({
  id: uuidv4(),
  event: 'test',
  step: 'test',
  subjectId: uuidv4(),
  title: 'Test notice',
  sentence: { template: null, parts: [{ text: 'The channel ' }, { value: name, strong: true }, { text: ' works.' }] },
  agent: undefined,
  platform: undefined,
  until: undefined,
  link: `${baseUrl}/console`,
  outcome: undefined,
});

/** Ignores quiet hours and rules. The result is stored on the channel, too. */
export async function tryChannel(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'log' | 'store' | 'vault' | 'outbound' | 'publicOutbound'>,
  channel: NoticeChannelTable,
): Promise<{ kind: Sent['kind']; why: string }> {
  const { store, clock, baseUrl } = broker;
  const kind = kindOf(channel.kind);
  if (!kind) return { kind: 'failed', why: 'This release of the broker knows no channels of this kind.' };
  const sent = await attempt(broker, async () => {
    const sending = sendingOn(broker, channel);
    const tried = await kind.send(sending, testMessage(baseUrl, channel.name));
    if (tried.kind !== 'sent' || !kind.listen || !takesClicks(channel.kind, sending)) return tried;
    const secret = telegramSecret(broker.vault.masterKeys().current, channel.id);
    return await kind.listen(sending, clicksUrl(broker, channel), secret);
  });
  if (sent.kind === 'sent' && sent.lacking !== undefined) {
    await noteFailing(store.db, channel, 'active', sent.lacking);
    return { kind: 'failed', why: sent.lacking };
  }
  if (sent.kind === 'sent') {
    await noteMended(store.db, channel, clock());
    return { kind: sent.kind, why: 'The channel accepted the test notice.' };
  }
  await noteFailing(store.db, channel, sent.kind === 'gone' ? 'gone' : 'failing', sent.why);
  return sent;
}
