/** Finds a connection by what a person typed: its label or id. */
import type { Connection } from '../broker/console/answers.ts';
import { didYouMean } from '../broker/runtime/did-you-mean.ts';
import { CommandFailed } from './failure.ts';
import { PROGRAM } from './program-name.ts';

/** Throws CommandFailed when there is none, with a similar label. */
export function findConnection(connections: readonly Connection[], given: string): Connection {
  const found = connections.find(({ id, label }) => label === given || id === given.toLowerCase());
  if (found) return found;
  const near = didYouMean(
    given,
    connections.map(({ label }) => label),
  );
  throw new CommandFailed(`There is no connection ${given}.${near} All of them: ${PROGRAM} connection list`);
}
