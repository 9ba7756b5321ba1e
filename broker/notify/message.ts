/** What owners are told, the same on every channel. It has the sentence of a held call, and never a body or a secret. */
import { visibleLine } from '../console/static/visible.js';
import type { Instant } from '../policy/facts.ts';
import { plainSentence, type Sentence } from '../sentences/part.ts';
import type { NoticeEvent } from '../store/tables/notices.ts';

/**
 * A message. All of its texts are readable (hidden characters are shown by number), of one line, and bounded; none is escaped: each
 * channel writes what it sends in its own syntax, in which nothing of a text may mean anything.
 */
export type Message = {
  /** The same for a second copy: what the channel can tell copies by. */
  id: string;
  event: NoticeEvent | 'test';
  /** `outcome`: what a message told of is over. `test`: an owner tries the channel. */
  step: 'first' | 'reminder' | 'outcome' | 'test';
  /** The id of the held call, request, registration, agent, connection or passkey. */
  subjectId: string;
  /** Our own words, such as `Approval needed`. */
  title: string;
  sentence: Sentence;
  /** The agent's name. */
  agent: string | undefined;
  /** Its id, and what it is called. */
  platform: { id: string; name: string } | undefined;
  /** When it ends by itself. */
  until: Instant | undefined;
  /** The page where an owner decides, or looks. */
  link: string;
  /** What became of it, such as `Approved by ann@acme.example`. */
  outcome: string | undefined;
  /** What the buttons carry by which a person decides right there, where that is allowed; see buttons.ts. */
  buttons?: { approve: string; deny: string };
};

/** A text of at most so many UTF-16 code units, with an ellipsis where something was cut off. */
export const cutText = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1).toWellFormed()}…` : text;

const MOST_OF_A_NAME = 120;

/** A name or an address of somebody else's as it stands in messages: of one line, nothing hidden, and cut. */
export function readable(text: string): string {
  const cut = text.length > MOST_OF_A_NAME ? `${text.slice(0, MOST_OF_A_NAME)}…` : text;
  return visibleLine(cut.toWellFormed());
}

/** A moment, as people everywhere read it: `2026-01-31 09:30 UTC`. */
const momentText = (at: Instant): string => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** The sentence on one line of plain text. It is readable already; nothing hidden goes out, whatever the store holds. */
export const sentenceText = ({ sentence }: Pick<Message, 'sentence'>): string => visibleLine(plainSentence(sentence));

/** A name with the id that rules and commands know it by. */
const platformText = ({ id, name }: { id: string; name: string }): string => (name === id ? id : `${name} (${id})`);

/** The message as lines of plain text, without its title and its link. */
export function linesOf(message: Message): string[] {
  const { agent, platform, until, outcome, step } = message;
  const who = [agent === undefined ? undefined : `Agent: ${agent}`, platform && `Platform: ${platformText(platform)}`];
  return [
    ...(outcome === undefined ? [] : [`${outcome}.`]),
    sentenceText(message),
    ...who.filter((line) => line !== undefined && line !== ''),
    ...(until === undefined || step === 'outcome' ? [] : [`Until: ${momentText(until)}`]),
  ].filter((line): line is string => line !== undefined);
}
