/** Formats an audit row in one line, with the same texts as the console's activity page. */
import type { AuditRow } from '../../broker/console/answers.ts';
import { eventText } from '../../broker/console/static/activity/event-text.js';
import {
  actorOf,
  describeReason,
  formatCall,
  requesterOf,
  resultOf,
} from '../../broker/console/static/activity/row-labels.js';
import { badgeLine } from '../terminal/badge.ts';
import { cut, type Line, line, padded, styled } from '../terminal/line.ts';
import { localTime } from '../terminal/local-time.ts';

/** Addresses of owners by their id. */
export type Names = ReadonlyMap<string, string>;

const RESULT_COLUMNS = 13;

/** `width`: of the terminal, in columns; infinite for other outputs. */
export function lineOfRow(row: AuditRow, owners: Names, width: number): Line {
  const names = new Map([...owners, ...Object.entries(row.agent_names)]);
  const result = padded(badgeLine(resultOf(row)), RESULT_COLUMNS);
  return cut(
    line`${styled('quiet', localTime(row.created_at))}  ${result}  ${whatOf(row, names)}${whyOf(row, names)}`,
    width,
  );
}

function whatOf(row: AuditRow, names: Names): Line {
  const who = row.agent_public_id && (names.get(row.agent_public_id) ?? row.agent_public_id);
  const agent = who ? line`${styled('bold', who)} ` : line``;
  if (row.kind === 'event' && !row.method)
    return line`${agent}${eventText(row)}${row.platform_name ? ` · ${row.platform_name}` : ''}`;
  // Without a template the sentence only repeats method and path.
  const what = row.sentence?.template ? `${who ? 'asked to ' : ''}${row.sentence.text}` : formatCall(row);
  return line`${agent}${what}${row.platform_name ? ` on ${row.platform_name}` : ''}`;
}

/** Returns the reason for the result of a call; for a change or a decision, who made it. */
function whyOf(row: AuditRow, names: Names): Line {
  if (row.kind === 'action') return styled('quiet', line`: ${describeReason(row, actorOf(row, names))}`);
  const by = requesterOf(row.flags, names);
  const whom = row.agent_public_id && names.get(row.agent_public_id);
  return by && by !== whom ? styled('quiet', line`, by ${by}`) : line``;
}
