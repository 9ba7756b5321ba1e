/** From the outcome of a call to a tool of `/mcp`. */
import type { CallOutcome } from '../../mcp/client/action.ts';
import { parseExactJson } from '../../mcp/client/exact-json.ts';
import { answeredOutcome } from '../../mcp/client/read-outcome.ts';
import type { OutcomeOf } from '../audit/outcome.ts';
import { answeredNotes } from './outcome-reply.ts';

/**
 * Code units of a list or an object that is parsed. Of a longer one a tool tells the beginning, as text (mcp/tools/answer.ts), and parsing it would
 * keep every other agent waiting. Twice what is told: a shorter one may be told whole, without the whitespace in it.
 */
const MOST_PARSED = 512 * 1024;

/** A platform's answer as the client reads it from a reply; `data` is the text of what is too long for a tool's result. */
export function toolOutcome(outcome: OutcomeOf<'answered'>): CallOutcome {
  const text = outcome.dataJson.toString();
  // A string is one value: to parse it is as cheap as to copy it.
  const isParsed = text.length <= MOST_PARSED || text.startsWith('"');
  return answeredOutcome(isParsed ? parseExactJson(text) : text, answeredNotes(outcome));
}
