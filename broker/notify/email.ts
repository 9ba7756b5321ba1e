/** E-mail: plain text, and the same as simple HTML in which everything of a message is escaped. */
import { sendMail } from '../egress/send-mail.ts';
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { cutText, linesOf, type Message, sentenceText, unlinked } from './message.ts';

const MAX_SUBJECT_LENGTH = 150;

type Settings = {
  host: string;
  port?: number;
  security?: 'tls' | 'starttls' | 'none';
  user?: string;
  from: string;
  to: readonly string[];
};

const PORT = { tls: 465, starttls: 587, none: 25 };

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const inHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => ESCAPES[one] ?? '');

const subjectOf = (message: Message): string =>
  cutText(`${message.title}: ${sentenceText(message)}`, MAX_SUBJECT_LENGTH);

/** The text of the mail. The only link in it is the broker's own. */
const textOf = (message: Message): string[] => linesOf(message).map(unlinked);

const htmlOf = (message: Message): string =>
  [
    `<p><strong>${inHtml(message.title)}</strong></p>`,
    ...textOf(message).map((line) => `<p>${inHtml(line)}</p>`),
    `<p><a href="${inHtml(message.link)}">${inHtml(message.link)}</a></p>`,
  ].join('\n');

/** Returns the addresses of the channel without those of owners who approved the call already. */
function undecided({ settings }: Pick<Sending, 'settings'>, { approvers }: Pick<Message, 'approvers'>): string[] {
  const approved = new Set(approvers?.approvedBy.map((address) => address.toLowerCase()));
  return (settings as Settings).to.filter((address) => !approved.has(address.toLowerCase()));
}

async function send(sending: Sending, message: Message): Promise<Sent> {
  const { settings, secret, outbound } = sending;
  const { host, security = 'starttls', port = PORT[security], user, from } = settings as Settings;
  const mailed = await sendMail(
    outbound,
    { host, port, security, user, password: secret },
    {
      from,
      to: undecided(sending, message),
      subject: subjectOf(message),
      text: [message.title, '', ...textOf(message), '', message.link].join('\n'),
      html: htmlOf(message),
      messageId: `<${message.id}@${new URL(message.link).hostname}>`,
    },
  );
  if (!mailed.ok) return { kind: 'failed', why: mailed.why };
  const { refused } = mailed;
  return {
    kind: 'sent',
    ...(refused && { lacking: `The mail server refused ${refused.join(', ')}; the others got it.` }),
  };
}

/** E-mails cannot be edited: the outcome is not written back. */
export const email: ChannelKind = {
  send,
  concerns: (sending, message) => undecided(sending, message).length > 0,
};
