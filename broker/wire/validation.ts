import type { z } from 'zod';
import { present } from '../policy/present.ts';

const MOST_NAMED = 200;
/** What JSON calls the library's types. */
const TYPES: Record<string, string> = { record: 'object', int: 'whole number' };

/** One sentence about the first thing that is wrong with a body: the field, and what belongs there. */
export function firstProblem(error: z.ZodError): string {
  const issue = present(error.issues[0], 'issue');
  const field = issue.path.length === 0 ? 'body' : shorten(issue.path.map(String).join('.'));
  if (issue.code === 'unrecognized_keys')
    return `${field === 'body' ? '' : `${field}: `}unknown field ${shorten(issue.keys.map((key) => JSON.stringify(key)).join(', '))}.`;
  const more = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : '';
  return `${field}: ${inWords(issue)}.${more}`.replace('..', '.');
}

/** What the library says of a wrong type, for people: that something is not there reads "received undefined" with it. */
function inWords({ code, message }: z.core.$ZodIssue): string {
  const [, expected, received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (code !== 'invalid_type' || expected === undefined) return message;
  const type = TYPES[expected] ?? expected;
  const wanted = `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`;
  return received === 'undefined' ? `is missing: send ${wanted}` : `must be ${wanted}, not ${received}`;
}

/** Names come from whoever sent the body, and may be as long as it. */
function shorten(names: string): string {
  return names.length > MOST_NAMED ? `${names.slice(0, MOST_NAMED).toWellFormed()}…` : names;
}
