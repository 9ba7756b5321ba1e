/** What an owner says to what waits, as the owner API takes it. */
import type { Body } from '../../broker/console/answers.ts';
import { namesOf } from '../../broker/console/static/inbox/words.js';
import { expiresInSeconds, type Lasting } from '../duration.ts';
import { CommandFailed } from '../failure.ts';
import { PROGRAM } from '../program-name.ts';
import type { Whole } from './show.ts';
import { type StandingWanted, standingWord } from './standing-word.ts';

export type Terms = {
  scopes?: string[];
  expires?: Lasting;
  approval?: boolean;
  connection?: string;
  name?: string;
  policy?: string;
  standing?: StandingWanted;
};

type Word =
  | Body<'POST', '/owner/approvals/x/approve'>
  | Body<'POST', '/owner/access-requests/x/approve'>
  | Body<'POST', '/owner/registrations/x/approve'>;

/** Where a decision is sent. Accounts of people are decided in the console alone. */
export const PATHS = {
  approval: '/owner/approvals',
  access: '/owner/access-requests',
  registration: '/owner/registrations',
} as const;

/** Throws CommandFailed, with what has to be said in addition or elsewhere. */
export function approvingWord(whole: Whole, terms: Terms, baseUrl: string): Word {
  const takes = (...names: (keyof Terms)[]) => {
    const other = Object.keys(terms).find((name) => !names.includes(name as keyof Terms));
    const option = other === 'standing' ? 'next' : other;
    if (option !== undefined) throw new CommandFailed(`--${option} says nothing about this: ${WHAT[whole.kind]}.`);
  };
  switch (whole.kind) {
    case 'approval':
      takes('standing');
      if (!whole.item.request)
        throw new CommandFailed('The stored request was altered and cannot be read. Deny it; the agent may ask again.');
      return {
        request_hash: whole.item.request_hash,
        ...(terms.standing && { standing: standingWord(whole.item, terms.standing) }),
      };
    case 'access':
      takes('scopes', 'expires', 'approval', 'connection');
      return accessWord(whole.item, terms);
    case 'registration':
      takes('name', 'policy', 'scopes');
      if (whole.item.namesake !== null && terms.name === undefined)
        throw new CommandFailed('Another agent has this name already: give this one another with --name.');
      return {
        ...(terms.scopes && { scopes: narrowed(whole.item.requested_scopes, terms.scopes) }),
        ...(terms.name !== undefined && { name: terms.name }),
        // The policy that was shown, and no other that has become the default since.
        ...((terms.policy ?? whole.item.policy?.id) && { policy: terms.policy ?? whole.item.policy?.id }),
      };
    case 'person':
      throw inTheConsole(baseUrl);
  }
}

const WHAT: Record<Whole['kind'], string> = {
  approval: 'it is a held call',
  access: 'it is an access request',
  registration: 'it is an agent that registers itself',
  person: 'it is an account of a person',
};

function accessWord(
  asked: Extract<Whole, { kind: 'access' }>['item'],
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

type Asked = Extract<Whole, { kind: 'registration' }>['item']['requested_scopes'];

/**
 * Those of the scopes that were asked for that are named: as they are, by what stands after their colon, or with their platform, as they
 * are shown. Throws CommandFailed for a name of none.
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

/** Throws CommandFailed where no reason can be said. */
export function denyingWord(whole: Whole, reason: string | undefined, baseUrl: string): { note?: string } {
  if (whole.kind === 'person') throw inTheConsole(baseUrl);
  if (whole.kind === 'registration' && reason !== undefined)
    throw new CommandFailed('An agent that registers is told no reason: leave out --reason.');
  return reason === undefined ? {} : { note: reason };
}

const inTheConsole = (baseUrl: string) =>
  new CommandFailed(`Accounts of people are decided in the console: ${baseUrl}/console/people`);
