/** The content of a notice, the same for every channel. It includes the sentence of a held call, and never a body or a secret. */
import { visibleLine } from '../console/static/visible.js';
import type { Instant } from '../policy/facts.ts';
import { plainSentence, type Sentence } from '../sentences/part.ts';
import type { NoticeEvent } from '../store/tables/notices.ts';

/**
 * A message. All of its texts are visible (hidden characters are shown as code points), on one line, and of limited length; none is escaped: each
 * channel encodes them in its own syntax, so that no text is interpreted as markup.
 */
export type Message = {
  /** The same for a repeated send, so that the channel can deduplicate. */
  id: string;
  event: NoticeEvent | 'test';
  /** `update`: the subject has changed, and still waits. `outcome`: it is settled. `test`: an owner tests the channel. */
  step: 'first' | 'reminder' | 'update' | 'outcome' | 'test';
  /** The id of the held call, request, registration, agent, connection or passkey. */
  subjectId: string;
  /** A title of ours, such as `Approval needed`. */
  title: string;
  sentence: Sentence;
  /** The agent's name. */
  agent: string | undefined;
  /** The name of the parent of a child: the parent chose the child's own name, which may be that of another agent. */
  parent?: string;
  /** The platform's id and name. */
  platform: { id: string; name: string } | undefined;
  /** When the subject expires. */
  until: Instant | undefined;
  /** The page where an owner decides, or reads more. */
  link: string;
  /** The result of the subject, such as `Approved by ann@acme.example`. */
  outcome: string | undefined;
  /** What has happened to a held call that still waits, such as `Approved by ann@acme.example; 1 more person has to approve`. */
  progress?: readonly string[];
  /** For a call that several people have to approve: how many, and the addresses of those who have. */
  approvers?: { needed: number; approvedBy: readonly string[] };
  /** The tokens of the buttons that decide in the message itself, where that is allowed; see buttons.ts. */
  buttons?: { approve: string; deny: string };
};

/** Truncates a text to so many UTF-16 code units, with an ellipsis where something was cut off. No character is split. */
export const cutText = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…` : text;

/**
 * Breaks up addresses by the invisible U+2060 WORD JOINER, for clients that make links of addresses in plain text: `https://…`, host names, IP addresses
 * and e-mail addresses.
 */
export const unlinked = (text: string): string =>
  text.replace(/:(?=\/\/)|\.(?=\p{L}{2})|(?<=\d)\.(?=\d{1,3}\.\d)|(?<=\S)@(?=\S)/gu, '$&\u2060');

const MAX_NAME_LENGTH = 120;

/** Makes an untrusted name or address safe for a message: one line, no hidden characters, truncated. */
export function readable(text: string): string {
  return visibleLine(cutText(text, MAX_NAME_LENGTH + 1).toWellFormed());
}

/** Formats a time independent of locale: `2026-01-31 09:30 UTC`. */
const momentText = (at: Instant): string => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** Returns the sentence as one line of plain text. Hidden characters are escaped here again, whatever the store holds. */
export const sentenceText = ({ sentence }: Pick<Message, 'sentence'>): string => visibleLine(plainSentence(sentence));

/** Returns the platform's name with the id that rules and commands use. */
const platformText = ({ id, name }: { id: string; name: string }): string => (name === id ? id : `${name} (${id})`);

/** Returns the agent's name, and for a child that of its parent; undefined for a message about no agent. */
export const agentText = ({ agent, parent }: Pick<Message, 'agent' | 'parent'>): string | undefined =>
  agent !== undefined && parent !== undefined ? `${agent} (a child of ${parent})` : agent;

/** Returns the message as lines of plain text, without its title and its link. */
export function linesOf(message: Message): string[] {
  const { platform, until, outcome, progress = [], step } = message;
  const agent = agentText(message);
  const who = [agent === undefined ? undefined : `Agent: ${agent}`, platform && `Platform: ${platformText(platform)}`];
  return [
    ...[...(outcome === undefined ? [] : [outcome]), ...progress].map((line) => `${line}.`),
    sentenceText(message),
    ...who.filter((line) => line !== undefined && line !== ''),
    ...(until === undefined || step === 'outcome' ? [] : [`Until: ${momentText(until)}`]),
  ].filter((line): line is string => line !== undefined);
}
