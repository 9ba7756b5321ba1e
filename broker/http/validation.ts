import type { z } from 'zod';

/** One sentence about the first thing that is wrong with a body: the field, and what belongs there. */
export function firstProblem(error: z.ZodError): string {
  const issue = error.issues[0]!;
  const field = issue.path.length === 0 ? 'body' : issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys')
    return `${field === 'body' ? '' : `${field}: `}unknown field ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}.`;
  const more = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : '';
  return `${field}: ${issue.message}.${more}`.replace('..', '.');
}
