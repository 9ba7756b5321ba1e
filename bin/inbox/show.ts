/** Shows one item of the inbox in full. */
import type { AccessRequest, HeldCall, Registration } from '../../broker/console/answers.ts';
import { askedScope, lackInWords, namesOf } from '../../broker/console/static/inbox/words.js';
import { inWords } from '../../broker/console/static/shell/duration.js';
import { oddities } from '../../broker/console/static/visible.js';
import type { ConnectionOptions } from '../connection.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { PROGRAM } from '../program-name.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { othersWords, unseenIn, warnings } from '../terminal/own-words.ts';
import { fact, sheetOf } from './sheet.ts';
import { findWaiting, pickWaiting, requesterOf, type Waiting, whatOf } from './waiting.ts';

/** An item with all details, as it is now. */
export type Whole =
  | { kind: 'approval'; id: string; item: HeldCall }
  | { kind: 'access'; id: string; item: AccessRequest }
  | { kind: 'registration'; id: string; item: Registration }
  | Extract<Waiting, { kind: 'person' }>;

export async function showWaiting(id: string, options: ConnectionOptions & { json?: boolean }): Promise<void> {
  const api = await openOwnerApi(options);
  const me = await api.ask('GET', '/owner/me');
  const whole = await readWhole(api, pickWaiting(await findWaiting(api, me), id));
  printResult(options, { id: whole.id, kind: whole.kind, item: whole.item }, () => [
    ...formatItem(whole, terminalWidth(), me.base_url),
    line``,
    ...howToDecide(whole, me.base_url),
  ]);
}

export async function readWhole(api: OwnerApi, one: Waiting): Promise<Whole> {
  const { id } = one;
  if (one.kind === 'approval') return { kind: one.kind, id, item: await api.ask('GET', `/owner/approvals/${id}`) };
  if (one.kind === 'access') return { kind: one.kind, id, item: await api.ask('GET', `/owner/access-requests/${id}`) };
  if (one.kind === 'registration')
    return { kind: one.kind, id, item: await api.ask('GET', `/owner/registrations/${id}`) };
  return one;
}

/** Formats an item for the person who decides. `width`: columns of the terminal; `baseUrl`: of the broker, for browsers. */
export function formatItem(whole: Whole, width: number, baseUrl: string): Line[] {
  const left = whole.kind === 'person' ? null : whole.item.expires_in_seconds;
  const end = left === null ? [] : fact('Time left', inWords(left * 1000), width);
  if (whole.kind === 'approval')
    return [...sheetOf(whole.item, width), ...end, ...fact('Page', whole.item.approve_url, width)];
  if (whole.kind === 'access') return [...accessLines(whole.item, width), ...end];
  if (whole.kind === 'registration') return [...registrationLines(whole.item, width), ...end];
  return [
    line`${styled('bold', requesterOf({ ...whole }))}: ${whatOf(whole)}`,
    ...fact('Named by', `${whole.item.named_by}${whole.item.verified ? '' : ', which asserts it'}`, width),
    ...fact('Page', `${baseUrl}/console/people`, width),
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
    ...fact('Why not yet', lackInWords(asked.reason_code), width),
    ...(granted.length === 0 ? ['nothing on this platform'] : granted).flatMap((each, i) =>
      fact(i === 0 ? 'Has now' : '', each, width),
    ),
    ...fact('Agent', `${asked.agent.agent_id}, ${asked.agent.status}`, width),
    ...(asked.platform === asked.platform_name ? [] : fact('Platform', asked.platform, width)),
    ...(asked.reason === null
      ? []
      : [
          line``,
          line`The agent's own words, which nobody checked:`,
          ...othersWords(asked.reason, width),
          ...unseenIn(asked.reason),
        ]),
    line``,
  ];
}

function registrationLines(asked: Registration, width: number): Line[] {
  const scopes = namesOf(asked.requested_scopes);
  const unknown = namesOf(asked.unknown_scopes);
  return [
    line`${styled('bold', asked.agent_name)} asks to become an agent.`,
    ...unseenIn(asked.agent_name),
    ...warnings(oddities(asked.agent_name)),
    styled('wait', 'Nobody checked who this is. Approve only what you started yourself or were told about.'),
    line``,
    ...fact('Owner', `it names ${asked.owner_email ?? asked.owner_id}`, width),
    ...fact('From', asked.source, width),
    ...fact(
      'Policy',
      asked.policy
        ? `it gets ${asked.policy.name}, version ${asked.policy.version}`
        : 'none: every call is denied until an admin gives it one',
      width,
    ),
    ...(scopes.length === 0 ? ['no scopes'] : scopes).flatMap((each, i) =>
      fact(
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
          ...othersWords(asked.agent_description, width),
          ...unseenIn(asked.agent_description),
        ]),
    line``,
  ];
}

export function howToDecide({ kind, id }: Whole, baseUrl: string): Line[] {
  if (kind === 'person') return [styled('quiet', `Decide: ${baseUrl}/console/people`)];
  return [styled('quiet', `Decide: ${PROGRAM} approve ${id}, or ${PROGRAM} deny ${id} --reason TEXT`)];
}
