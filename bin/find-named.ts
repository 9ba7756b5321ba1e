/** Finds something by what a person typed: its name or id. */
import type { Connection } from '../broker/console/answers.ts';
import { didYouMean } from '../broker/runtime/did-you-mean.ts';
import { CommandFailed } from './failure.ts';
import type { OwnerApi } from './owner-api.ts';

/**
 * Throws CommandFailed when there is none, with a similar name.
 *
 * @param kind what is looked for; `KIND list`, with a hyphen for each space, is the command that lists all
 */
export function findNamed<One extends { id: string; name: string }>(
  { command }: OwnerApi,
  kind: string,
  all: readonly One[],
  given: string,
): One {
  const found = all.find(({ id, name }) => name === given || id === given.toLowerCase());
  if (found) return found;
  const near = didYouMean(
    given,
    all.map(({ name }) => name),
  );
  throw new CommandFailed(
    `There is no ${kind} ${given}.${near} All of them: ${command(`${kind.replaceAll(' ', '-')} list`)}`,
  );
}

/** As `findNamed`, by the label of a connection. */
export const findConnection = (api: OwnerApi, connections: readonly Connection[], given: string): Connection =>
  findNamed(
    api,
    'connection',
    connections.map((one) => ({ ...one, name: one.label })),
    given,
  );
