/** Lists the connections to platforms, tests them, and sets their time limits. */
import type { Connection } from '../../broker/console/answers.ts';
import { badgeOf, describeTest, isOfPeople } from '../../broker/console/static/connections/connection-labels.js';
import { formatAgo } from '../../broker/console/static/shell/duration.js';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { findConnection } from '../find-named.ts';
import { openOwnerApi } from '../owner-api.ts';
import { badgeLine } from '../terminal/badge.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { printJson, printLines, printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';

type Options = ConnectionOptions & { json?: boolean };

const COLUMNS = [
  { title: 'NAME', least: 10 },
  { title: 'PLATFORM', least: 8 },
  { title: 'STATE' },
  { title: 'USED', least: 4 },
];

export async function listConnections(options: Options): Promise<void> {
  const { connections } = await (await openOwnerApi(options)).ask('GET', '/owner/connections');
  const rows = connections.map((one) => [
    styled('bold', one.label),
    line`${one.platform}`,
    stateOf(one),
    line`${one.default ? 'where none is named' : 'where it is named'}`,
  ]);
  printResult(options, connections, () =>
    rows.length === 0
      ? [line`There are no connections.`]
      : [...table(COLUMNS, rows, terminalWidth()), ...connections.flatMap(failureOf)],
  );
}

const failureOf = ({ label, failing }: Connection): Line[] =>
  failing === null
    ? []
    : [
        line`${styled('bold', label)} has got no token (first failure ${formatAgo(Math.max(0, Date.now() - Date.parse(failing.since)))}): ${failing.detail}`,
      ];

/** Formats the same badge as the console's. */
function stateOf(connection: Connection): Line {
  const { at, ...badge } = badgeOf(connection);
  const ago = at === undefined ? '' : ` ${formatAgo(Math.max(0, Date.now() - Date.parse(at)))}`;
  return line`${badgeLine(badge)}${ago}`;
}

/** In seconds; `default`: the value for any connection. */
export type TimeoutOptions = Options & { idle?: Seconds; wait?: Seconds };
type Seconds = number | 'default';

/** Changes the time limits of a connection. Throws WrongUsage when there is nothing to change, and CommandFailed when the connection does not exist. */
export async function changeTimeouts(given: string, options: TimeoutOptions): Promise<void> {
  const { idle, wait } = options;
  if (idle === undefined && wait === undefined) throw new WrongUsage('Say what to change, with --idle or --wait.');
  const api = await openOwnerApi(options);
  const { id, label } = findConnection(api, (await api.ask('GET', '/owner/connections')).connections, given);
  const told = (value: Seconds) => (value === 'default' ? null : value);
  const body = {
    ...(idle !== undefined && { idle_seconds: told(idle) }),
    ...(wait !== undefined && { wait_seconds: told(wait) }),
  };
  const now = await api.ask('POST', `/owner/connections/${id}/settings`, body);
  const idleFor =
    now.idle_seconds === null ? 'as long as the platform says, or 60 seconds' : `${now.idle_seconds} seconds`;
  printResult(options, now, () => [
    line`On ${styled('bold', label)} an answer may be silent for ${idleFor}, and a request waits for a person for ${now.wait_seconds ?? 25} seconds if it does not say.`,
  ]);
}

/**
 * Tests connections with one request each; without names, all of them except those for which people give tokens of their own. Sets the exit code
 * to 1 when a credential was refused, or a platform not reached.
 */
export async function testConnections(given: readonly string[], options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const { connections } = await api.ask('GET', '/owner/connections');
  const all = connections.filter((one) => !isOfPeople(one));
  const chosen = given.length === 0 ? all : given.map((name) => findConnection(api, connections, name));
  if (chosen.length === 0)
    throw new CommandFailed(
      connections.length === 0
        ? 'There are no connections.'
        : 'No connection has its own token: each call uses the token of a person.',
    );
  const results = [];
  for (const { id, label, platform } of chosen) {
    const result = await api.ask('POST', `/owner/connections/${id}/test`, {});
    results.push({ id, label, platform, ...result });
    if (!result.ok) process.exitCode = 1;
    const badge = badgeLine(describeTest(result));
    if (!options.json) printLines([line`${styled('bold', label)} (${platform})  ${badge}: ${result.detail}`]);
  }
  if (options.json) printJson(results);
}
