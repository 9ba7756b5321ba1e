/**
 * Finds JSON that parsing would change: a number that a double cannot represent, a duplicate member name. The broker refuses both in
 * its own input; here the line is parsed and serialised before it reaches the broker, so that the broker could not detect either.
 */
import { firstProblem, type Problem } from '../../json/first-problem.ts';

/** The path of the problem in the message, and what is wrong there. */
export type Misread = { place: readonly (string | number)[]; reason: string };

/** The nesting that the broker accepts in a call, plus the message and its `params`. Deeper nesting could not be compared without a stack overflow. */
const MOST_LEVELS = 64 + 2;

/** Returns the first such problem in `text`, which JSON.parse has accepted; undefined when there is none. */
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
