/** What an answer says in `_meta` beside what every answer says. */
import type { OutcomeOf } from './outcome.ts';

/** How many members and values of an answer were masked, and by which rules; undefined: nothing was. */
export const maskedIn = ({
  masked,
  call,
}: OutcomeOf<'answered'>): { count: number; rules: readonly string[] } | undefined =>
  masked ? { count: masked, rules: call.decided?.verdict.mask?.rules ?? [] } : undefined;

/** Notes in `_meta`: dropped headers, redaction and others. */
export function answerNotes(outcome: OutcomeOf<'answered' | 'held'>): Record<string, unknown> {
  const { droppedHeaders } = outcome.call;
  const notes: Record<string, unknown> = droppedHeaders.length > 0 ? { dropped_headers: droppedHeaders } : {};
  if (outcome.call.traceId !== undefined) notes.trace_id = outcome.call.traceId;
  if (outcome.kind === 'held') return notes;
  const { standing } = outcome.call;
  if (standing) notes.standing_approval = standing;
  if (outcome.call.limits) notes.limits = outcome.call.limits;
  if (outcome.redacted) notes.redacted = true;
  const masked = maskedIn(outcome);
  if (masked) notes.masked = masked;
  if (outcome.encoding !== undefined) notes.encoding = outcome.encoding;
  if (outcome.contentType !== undefined && !isJsonType(outcome.contentType))
    notes.upstream_content_type = outcome.contentType;
  if (outcome.followed !== undefined) notes.upstream_followed = outcome.followed.host;
  if (outcome.location !== undefined) notes.upstream_location = outcome.location;
  if (outcome.headers !== undefined) notes.upstream_headers = outcome.headers;
  return notes;
}

const isJsonType = (type: string): boolean => type === 'application/json' || type.endsWith('+json');
