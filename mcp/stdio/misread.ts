/**
 * What in a line of JSON would leave this process as something else: a number that a double does not hold, a member name that
 * is there twice. The broker refuses both in what it reads itself; here the line is parsed and written again before it gets
 * there, so that nobody after this would see what the model had asked for.
 */
import { firstProblem, type Problem } from '../../json/first-problem.ts';

/** A place as it is written in the text, and what is wrong there. */
export type Misread = { place: readonly (string | number)[]; reason: string };

/** What the broker takes in a call, below the message and its `params`. Deeper than the stack is, nothing could be compared. */
const MOST_LEVELS = 64 + 2;

/** The first of it in `text`, which JSON.parse has taken; undefined when there is none. */
export function misreadIn(text: string): Misread | undefined {
  const problem = firstProblem(text, { maxDepth: MOST_LEVELS, exactNumbers: true });
  return problem && { place: problem.place, reason: reasonOf(problem) };
}

function reasonOf({ kind, detail }: Problem): string {
  if (kind === 'inexact_number')
    return `write it as text, because the number ${detail} would be sent as another number`;
  if (kind === 'depth') return 'this is more levels deep than a call may be';
  return 'this member is there twice: write it once';
}
