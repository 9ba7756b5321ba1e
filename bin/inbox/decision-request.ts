/** Builds an owner's decision on an inbox item, as the owner API accepts it. */
import type { Body } from '../../broker/console/answers.ts';
import { namesOf } from '../../broker/console/static/inbox/entry-text.js';
import { expiresInSeconds, type Lasting } from '../duration.ts';
import { CommandFailed } from '../failure.ts';
import { PROGRAM } from '../program-name.ts';
import type { WaitingItem } from './show.ts';
import { type StandingOptions, standingRequest } from './standing-request.ts';

export type Terms = {
  scopes?: string[];
  expires?: Lasting;
  approval?: boolean;
  connection?: string;
  name?: string;
  policy?: string;
  standing?: StandingOptions;
};

type ApprovalBody =
  | Body<'POST', '/owner/approvals/x/approve'>
  | Body<'POST', '/owner/access-requests/x/approve'>
  | Body<'POST', '/owner/registrations/x/approve'>;

/** Paths of decisions. Accounts of people are decided only in the console. */
export const PATHS = {
  approval: '/owner/approvals',
  access: '/owner/access-requests',
  registration: '/owner/registrations',
} as const;

/** Builds an approval. Throws CommandFailed, when details are missing, or the decision has to be made elsewhere. */
export function approvalRequest(entry: WaitingItem, terms: Terms, baseUrl: string): ApprovalBody {
  const takes = (...names: (keyof Terms)[]) => {
    const other = Object.keys(terms).find((name) => !names.includes(name as keyof Terms));
    const option = other === 'standing' ? 'next' : other;
    if (option !== undefined) throw new CommandFailed(`--${option} says nothing about this: ${WHAT[entry.kind]}.`);
  };
  switch (entry.kind) {
    case 'approval':
      takes('standing');
      if (!entry.item.request)
        throw new CommandFailed('The stored request was altered and cannot be read. Deny it; the agent may ask again.');
      return {
        request_hash: entry.item.request_hash,
        ...(terms.standing && { standing: standingRequest(entry.item, terms.standing) }),
      };
    case 'access':
      takes('scopes', 'expires', 'approval', 'connection');
      return accessApproval(entry.item, terms);
    case 'registration':
      takes('name', 'policy', 'scopes');
      if (entry.item.namesake !== null && terms.name === undefined)
        throw new CommandFailed('Another agent has this name already: give this one another with --name.');
      return {
        ...(terms.scopes && { scopes: narrowed(entry.item.requested_scopes, terms.scopes) }),
        ...(terms.name !== undefined && { name: terms.name }),
        // Names the policy that was shown, in case another one has become the default since.
        ...((terms.policy ?? entry.item.policy?.id) && { policy: terms.policy ?? entry.item.policy?.id }),
      };
    case 'person':
      throw inTheConsole(baseUrl);
  }
}

const WHAT: Record<WaitingItem['kind'], string> = {
  approval: 'it is a held call',
  access: 'it is an access request',
  registration: 'it is an agent that registers itself',
  person: 'it is an account of a person',
};

function accessApproval(
  asked: Extract<WaitingItem, { kind: 'access' }>['item'],
  { scopes, expires, approval, connection }: Terms,
): Body<'POST', '/owner/access-requests/x/approve'> {
  const all = scopes ?? (asked.scope === null ? [] : [asked.scope]);
  if (all.length === 0)
    throw new CommandFailed(
      `It asks for the platform as a whole: say which scopes with --scopes. ${asked.platform} has ${asked.platform_scopes.join(', ')}.`,
    );
  const labels = asked.connections.map(({ label }) => label).join(', ');
  const named = asked.connections.find(({ label }) => label === connection);
  if (connection !== undefined && !named)
    throw new CommandFailed(`${asked.platform} has no connection ${connection}; it has ${labels}.`);
  return {
    scopes: all,
    ...(named && { connection_id: named.connection_id }),
    ...expiresInSeconds(expires),
    ...(approval !== undefined && { require_approval: approval }),
  };
}

type Asked = Extract<WaitingItem, { kind: 'registration' }>['item']['requested_scopes'];

/**
 * Returns those of the requested scopes that are named: in full, by the part after their colon, or with their platform, as they
 * are shown. Throws CommandFailed for a name that matches none.
 */
function narrowed(asked: Asked, names: readonly string[]): Asked {
  const namesOfOne = (scope: string, platformId: string) => [
    scope,
    scope.slice(scope.indexOf(':') + 1),
    `${scope} on ${platformId}`,
  ];
  const has = (name: string) =>
    asked.some(({ platformId, scopes }) => scopes.some((scope) => namesOfOne(scope, platformId).includes(name)));
  const wrong = names.find((name) => !has(name));
  if (wrong !== undefined)
    throw new CommandFailed(
      `It does not ask for ${wrong}. It asks for ${namesOf(asked).join(', ') || 'no scopes'}. Grant more afterwards: ${PROGRAM} grant`,
    );
  return asked
    .map(({ platformId, scopes }) => ({
      platformId,
      scopes: scopes.filter((scope) => namesOfOne(scope, platformId).some((name) => names.includes(name))),
    }))
    .filter(({ scopes }) => scopes.length > 0);
}

/** Builds a denial. Throws CommandFailed where a reason is not supported. */
export function denialRequest(entry: WaitingItem, reason: string | undefined, baseUrl: string): { note?: string } {
  if (entry.kind === 'person') throw inTheConsole(baseUrl);
  if (entry.kind === 'registration' && reason !== undefined)
    throw new CommandFailed('No reason can be sent to an agent that registers itself: leave out --reason.');
  return reason === undefined ? {} : { note: reason };
}

const inTheConsole = (baseUrl: string) =>
  new CommandFailed(`Accounts of people are decided in the console: ${baseUrl}/console/people`);
