import { z } from 'zod';
import { allowedMembers, schemaProblem } from '../../json/schema-problem.ts';
import { present } from '../runtime/present.ts';

z.config({ customError: allowedMembers });

const MAX_NAMED = 200;

/** Returns one sentence about the first problem of a body: the field, and what it must be. */
export function firstProblem(error: z.ZodError): string {
  const issue = present(error.issues[0], 'issue');
  const field = issue.path.length === 0 ? 'body' : shorten(issue.path.map(String).join('.'));
  if (issue.code === 'unrecognized_keys')
    return `${field === 'body' ? '' : `${field}: `}unknown field ${shorten(issue.keys.map((key) => JSON.stringify(key)).join(', '))}; ${issue.message}.`;
  // Several issues may concern the same field.
  const others = new Set(error.issues.map(({ path }) => path.join('.'))).size - 1;
  const more = others > 0 ? ` (and ${others} more)` : '';
  return `${field}: ${schemaProblem(issue)}.${more}`.replace('..', '.');
}

/** Names come from the sender of the body, and may be as long as the body. */
function shorten(names: string): string {
  return names.length > MAX_NAMED ? `${names.slice(0, MAX_NAMED).toWellFormed()}…` : names;
}
