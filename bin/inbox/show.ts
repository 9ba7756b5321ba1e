/** Shows one item of the inbox in full. */
import type { AccessRequest, HeldCall, Registration } from '../../broker/console/answers.ts';
import { askedScope, describeLack, namesOf } from '../../broker/console/static/inbox/entry-text.js';
import { formatDuration } from '../../broker/console/static/shell/duration.js';
import { oddities } from '../../broker/console/static/visible.js';
import type { ConnectionOptions } from '../connection.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { foreignText, invisibleCharacters, warnings } from '../terminal/foreign-text.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { fieldLines, heldCallLines } from './held-call-lines.ts';
import { findWaiting, pickWaiting, requesterOf, titleOf, type Waiting } from './waiting.ts';

/** An item with all details, as it is now. */
export type WaitingItem =
  | { kind: 'approval'; id: string; item: HeldCall }
  | { kind: 'access'; id: string; item: AccessRequest }
  | { kind: 'registration'; id: string; item: Registration }
  | Extract<Waiting, { kind: 'person' }>;

export async function showWaiting(id: string, options: ConnectionOptions & { json?: boolean }): Promise<void> {
  const api = await openOwnerApi(options);
  const me = await api.ask('GET', '/owner/me');
  const entry = await readWaitingItem(api, pickWaiting(api, await findWaiting(api, me), id));
  printResult(options, { id: entry.id, kind: entry.kind, item: entry.item }, () => [
    ...formatItem(entry, terminalWidth(), me.base_url),
    line``,
    ...howToDecide(api, entry, me.base_url),
  ]);
}

export async function readWaitingItem(api: OwnerApi, one: Waiting): Promise<WaitingItem> {
  const { id } = one;
  if (one.kind === 'approval') return { kind: one.kind, id, item: await api.ask('GET', `/owner/approvals/${id}`) };
  if (one.kind === 'access') return { kind: one.kind, id, item: await api.ask('GET', `/owner/access-requests/${id}`) };
  if (one.kind === 'registration')
    return { kind: one.kind, id, item: await api.ask('GET', `/owner/registrations/${id}`) };
  return one;
}

/** Formats an item for the person who decides. `width`: columns of the terminal; `baseUrl`: of the broker, for browsers. */
export function formatItem(entry: WaitingItem, width: number, baseUrl: string): Line[] {
  const left = entry.kind === 'person' ? null : entry.item.expires_in_seconds;
  const end = left === null ? [] : fieldLines('Time left', formatDuration(left * 1000), width);
  if (entry.kind === 'approval')
    return [...heldCallLines(entry.item, width), ...end, ...fieldLines('Page', entry.item.approve_url, width)];
  if (entry.kind === 'access') return [...accessLines(entry.item, width), ...end];
  if (entry.kind === 'registration') return [...registrationLines(entry.item, width), ...end];
  return [
    line`${styled('bold', requesterOf({ ...entry }))}: ${titleOf(entry)}`,
    ...fieldLines('Named by', `${entry.item.named_by}${entry.item.verified ? '' : ', which asserts it'}`, width),
    ...fieldLines('Page', `${baseUrl}/console/people`, width),
  ];
}

function accessLines(asked: AccessRequest, width: number): Line[] {
  const granted = asked.grants.map(
    ({ scopes, connection, expires_at, expired }) =>
      `${scopes.join(', ')}${connection?.label ? ` on the connection ${connection.label}` : ''}${expires_at ? `, ${expired ? 'ended' : 'until'} ${expires_at}` : ''}`,
  );
  return [
    line`${styled('bold', asked.agent.name)} asks for ${styled('bold', askedScope(asked))} on ${styled('bold', asked.platform_name)}.`,
    ...warnings(oddities(asked.agent.name)),
    line``,
    ...fieldLines('Why not yet', describeLack(asked.reason_code), width),
    ...(granted.length === 0 ? ['nothing on this platform'] : granted).flatMap((each, i) =>
      fieldLines(i === 0 ? 'Has now' : '', each, width),
    ),
    ...fieldLines('Agent', `${asked.agent.agent_id}, ${asked.agent.status}`, width),
    ...(asked.platform === asked.platform_name ? [] : fieldLines('Platform', asked.platform, width)),
    ...(asked.reason === null
      ? []
      : [
          line``,
          line`The agent's own words, which nobody checked:`,
          ...foreignText(asked.reason, width),
          ...invisibleCharacters(asked.reason),
        ]),
    line``,
  ];
}

function registrationLines(asked: Registration, width: number): Line[] {
  const scopes = namesOf(asked.requested_scopes);
  const unknown = namesOf(asked.unknown_scopes);
  return [
    line`${styled('bold', asked.agent_name)} asks to become an agent.`,
    ...invisibleCharacters(asked.agent_name),
    ...warnings(oddities(asked.agent_name)),
    styled(
      'wait',
      'Nobody checked who this is. Approve only what you started yourself, or know about from the person who started it.',
    ),
    line``,
    ...fieldLines('Owner', `it names ${asked.owner_email ?? asked.owner_id}`, width),
    ...fieldLines('From', asked.source, width),
    ...fieldLines(
      'Policy',
      asked.policy
        ? `it gets ${asked.policy.name}, version ${asked.policy.version}`
        : 'none: every call is denied until an admin gives it one',
      width,
    ),
    ...(scopes.length === 0 ? ['no scopes'] : scopes).flatMap((each, i) =>
      fieldLines(
        i === 0 ? 'Asks for' : '',
        `${each}${unknown.includes(each) ? ' (no platform has it: not granted)' : ''}`,
        width,
      ),
    ),
    ...(asked.namesake === null
      ? []
      : [styled('bad', `Look closely: the agent ${asked.namesake} has this name already. This is another one.`)]),
    ...(asked.agent_description === null
      ? []
      : [
          line``,
          line`What it says it is for, which nobody checked:`,
          ...foreignText(asked.agent_description, width),
          ...invisibleCharacters(asked.agent_description),
        ]),
    line``,
  ];
}

export function howToDecide({ command }: OwnerApi, { kind, id }: WaitingItem, baseUrl: string): Line[] {
  if (kind === 'person') return [styled('quiet', `Decide: ${baseUrl}/console/people`)];
  return [styled('quiet', `Decide: ${command(`approve ${id}`)}, or ${command(`deny ${id} --reason TEXT`)}`)];
}
