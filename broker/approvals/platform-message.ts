/** Extracts a platform's error message for an approved call that it refused, to show it to the approver. */
import type { Broker } from '../broker.ts';
import { membersOf } from '../store/open-json.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { readStoredResult } from './held-result.ts';
import { readResult } from './own-approvals.ts';
import { summarisesFailure } from './sealed.ts';

/** In characters: a sentence or two. */
const MAX = 300;

/**
 * Members that hold a sentence for a person in the error answers of GitHub, Slack, Stripe, Google, Jira, OAuth, RFC 9457 and tools of MCP servers.
 */
const MEMBERS = [
  'message',
  'error_description',
  'detail',
  'error',
  'errorMessages',
  'errors',
  'title',
  'content',
  'text',
] as const;

/** Returns the platform's own error message, truncated to 300 characters; null when there was no error, or no message. */
export function platformMessage(broker: Pick<Broker, 'vault' | 'log'>, approval: ApprovalTable): string | null {
  const result = readResult(broker, approval);
  if (result === undefined || result === 'unreadable') return null;
  const { status, data, encoding } = readStoredResult(result);
  const failed = status >= 400 || summarisesFailure(approval.result_summary ?? '');
  if (!failed || encoding !== undefined) return null;
  const words = wordsIn(data)?.trim();
  if (!words) return null;
  return words.length > MAX ? `${words.slice(0, MAX)}…` : words;
}

/** Returns the first sentence in an error, up to a few levels deep. */
function wordsIn(value: unknown, depth = 0): string | undefined {
  if (typeof value === 'string') return depth === 0 && value.trimStart().startsWith('<') ? undefined : value;
  if (typeof value !== 'object' || value === null || depth > 2) return undefined;
  if (Array.isArray(value)) return wordsIn(value[0], depth + 1);
  const members = membersOf(value);
  for (const member of MEMBERS) {
    const words = wordsIn(members[member], depth + 1);
    if (words) return words;
  }
  return undefined;
}
