/** Lists what waits for an owner's decision, the same items as the console's inbox. */
import type {
  ListedAccessRequest,
  ListedCall,
  ListedRegistration,
  Me,
  PersonTokens,
} from '../../broker/console/answers.ts';
import { askedScope, describeLack, heldBy, nameWithParent } from '../../broker/console/static/inbox/entry-text.js';
import { forWhom } from '../../broker/console/static/request-view/person.js';
import { oddities } from '../../broker/console/static/visible.js';
import { CommandFailed } from '../failure.ts';
import { type OwnerApi, pagesOf } from '../owner-api.ts';
import { findByPrefix, shortIds } from '../short-id.ts';
import { type Line, line, styled } from '../terminal/line.ts';

export type Waiting = { id: string; short: string } & (
  | { kind: 'approval'; item: ListedCall }
  | { kind: 'access'; item: ListedAccessRequest }
  | { kind: 'registration'; item: ListedRegistration }
  | { kind: 'person'; item: PersonTokens }
);
type Found = Waiting extends infer One ? (One extends Waiting ? Omit<One, 'short'> : never) : never;

/** The broker's limit for one page. */
const PAGE = 200;

/** Returns every waiting item, oldest first. Accounts of people are included only for owners who may see them. */
export async function findWaiting(api: OwnerApi, { role }: Pick<Me, 'role'>): Promise<Waiting[]> {
  const query = (before: string | undefined) =>
    `status=pending&limit=${PAGE}${before === undefined ? '' : `&before=${before}`}`;
  const calls = await pagesOf(async (before) => {
    const { approvals: items, next } = await api.ask('GET', `/owner/approvals?${query(before)}`);
    return { items, next };
  });
  const requests = await pagesOf(async (before) => {
    const { access_requests: items, next } = await api.ask('GET', `/owner/access-requests?${query(before)}`);
    return { items, next };
  });
  const registrations = await pagesOf(async (before) => {
    const { registrations: items, next } = await api.ask('GET', `/owner/registrations?${query(before)}`);
    return { items, next };
  });
  const people =
    role === 'viewer'
      ? []
      : await pagesOf(async (cursor) => {
          const from = cursor === undefined ? '' : `&cursor=${cursor}`;
          const { tokens: items, next } = await api.ask('GET', `/owner/people?state=unconfirmed&limit=${PAGE}${from}`);
          return { items, next };
        });
  const found: Found[] = [
    ...calls.map((item) => ({ kind: 'approval' as const, id: item.approval_id, item })),
    ...requests.map((item) => ({ kind: 'access' as const, id: item.request_id, item })),
    ...registrations.map((item) => ({ kind: 'registration' as const, id: item.id, item })),
    ...people.map((item) => ({ kind: 'person' as const, id: item.id, item })),
  ];
  const short = shortIds(found.map(({ id }) => id));
  return found
    .toSorted((a, b) => Date.parse(a.item.created_at) - Date.parse(b.item.created_at))
    .map((one) => ({ ...one, short: short.get(one.id) ?? one.id }) as Waiting);
}

/** Finds a waiting item by its id or a prefix. Throws WrongUsage, or CommandFailed when no waiting item matches. */
export function pickWaiting({ command }: OwnerApi, waiting: readonly Waiting[], given: string): Waiting {
  const found = findByPrefix(waiting, given, (one) => `${requesterOf(one)}: ${titleOf(one).text}`);
  if (found) return found;
  throw new CommandFailed(
    `No pending item has the id ${given}: it was decided, or has expired. Pending items: ${command('inbox')}`,
  );
}

/** Returns the name of the requester. */
export const requesterOf = ({ kind, item }: Waiting): string => {
  if (kind === 'registration') return item.agent_name;
  if (kind === 'person') return item.agent ?? 'a person';
  return nameWithParent(item.agent);
};

/** Describes the request. */
export function titleOf({ kind, item }: Waiting): Line {
  if (kind === 'registration') return line`asks to become an agent`;
  if (kind === 'person')
    return line`account ${item.account ?? 'without a name'} on ${item.platform_id} is to be confirmed`;
  if (kind === 'access') return line`asks for ${askedScope(item)} on ${item.platform_name}`;
  const person = forWhom(item.caller);
  return line`${item.sentence.text} on ${item.platform_name}${person === '' ? '' : ` ${person}`}`;
}

/** Returns the reason why the item waits. */
export function reasonOf({ kind, item }: Waiting): Line {
  if (kind === 'approval') return line`${heldBy(item.held_because)}`;
  if (kind === 'access') return line`${describeLack(item.reason_code)}`;
  return line`${kind === 'person' ? 'nobody confirmed whose it is' : 'nobody checked who it is'}`;
}

/** Warns about letters that look like others, which a person cannot see. */
export function warningOf(one: Waiting): Line {
  const path = one.kind === 'approval' ? one.item.path : '';
  return oddities(`${requesterOf(one)} ${path}`).length > 0 ? styled('wait', '(odd letters) ') : line``;
}
