/** What a tool call returns to its client: an answer, or a way to wait for a person. */
import type { CallOutcome } from '../client/action.ts';
import type { ToolAnswer } from './answer.ts';

export type Held = Pick<
  Extract<CallOutcome, { kind: 'held' }>,
  'approvalId' | 'approvalUrl' | 'sentence' | 'expiresAt' | 'auditId'
>;

export type HeldCallResult =
  | { kind: 'answer'; answer: ToolAnswer }
  /** The call is held, and the client polls a task for it. */
  | { kind: 'task'; approval: Held; createdAt: string }
  | LinkSent;

/** The client receives a link, and then repeats the identical call. */
export type LinkSent =
  /** An `input_required` result with the link; the client sends `state` back with its response. */
  | { kind: 'link'; id: string; url: string; message: string; state: string }
  /** An error with the link. `words`: for clients that show it as text. */
  | { kind: 'link_first'; id: string; url: string; message: string; words: string };

export const answerResult = (answer: ToolAnswer): HeldCallResult => ({ kind: 'answer', answer });
