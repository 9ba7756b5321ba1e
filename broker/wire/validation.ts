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
  // Several rules may speak of the same mistake.
  const others = new Set(error.issues.map(({ path }) => path.join('.'))).size - 1;
  const more = others > 0 ? ` (and ${others} more)` : '';
  return `${field}: ${inWords(issue)}.${more}`.replace('..', '.');
}

/** The library's own sentences begin so; all others were written for whoever reads them. */
const OF_LIBRARY = /^(?:Invalid (?:input|option|GUID|UUID|discriminator)\b|Too (?:big|small): )/;
const UNITS: Record<string, readonly [one: string, several: string]> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  record: ['member', 'members'],
};

/** What the library says, for people: that something is not there reads "received undefined" with it. */
function inWords(issue: z.core.$ZodIssue): string {
  const { code, message } = issue;
  if (!OF_LIBRARY.test(message)) return message;
  if (code === 'invalid_value') return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`;
  if (code === 'invalid_union' && 'options' in issue && issue.options)
    return `must be one of ${issue.options.map(String).join(', ')}`;
  if (code === 'invalid_format') return 'must be a UUID';
  if (code === 'too_big')
    return bound(issue.inclusive === false ? 'less than' : 'at most', issue.maximum, issue.origin);
  if (code === 'too_small')
    return bound(issue.inclusive === false ? 'more than' : 'at least', issue.minimum, issue.origin);
  const [, expected, received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (code !== 'invalid_type' || expected === undefined) return message;
  const type = TYPES[expected] ?? expected;
  const wanted = `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`;
  if (received === 'undefined') return `is missing: send ${wanted}`;
  return `must be ${wanted}${expected === 'int' && received === 'number' ? '' : `, not ${received}`}`;
}

function bound(which: string, limit: number | bigint, origin: string): string {
  const [one, several] = UNITS[origin] ?? [];
  if (one === undefined) return `must be ${which} ${limit}`;
  return `must have ${which} ${limit} ${Number(limit) === 1 ? one : several}`;
}

/** Names come from whoever sent the body, and may be as long as it. */
function shorten(names: string): string {
  return names.length > MOST_NAMED ? `${names.slice(0, MOST_NAMED).toWellFormed()}…` : names;
}
