/** Converts the outcome of a call for a tool of `/mcp`. */
import type { CallOutcome } from '../../mcp/client/action.ts';
import { parseExactJson } from '../../mcp/client/exact-json.ts';
import { answeredOutcome } from '../../mcp/client/read-outcome.ts';
import type { OutcomeOf } from '../audit/outcome.ts';
import { answeredNotes } from './outcome-reply.ts';

/**
 * Limit, in code units, up to which a list or an object is parsed. Of a longer answer the tool returns the beginning as text (mcp/tools/answer.ts),
 * and parsing it would block all other agents. Twice what a tool returns: without its whitespace, a shorter one may fit as a whole.
 */
const MOST_PARSED = 512 * 1024;

/** Converts a platform's answer into the form that a client reads from a reply; `data` is text when the answer is too long for a tool's result. */
export function toolOutcome(outcome: OutcomeOf<'answered'>): CallOutcome {
  const text = outcome.dataJson.toString();
  // A string is a single value: parsing costs no more than copying.
  const isParsed = text.length <= MOST_PARSED || text.startsWith('"');
  return answeredOutcome(isParsed ? parseExactJson(text) : text, answeredNotes(outcome));
}
