/** Lists and revokes standing approvals, through the owner API. */
import type { StandingApproval } from '../../broker/console/answers.ts';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { findByPrefix, shortIds } from '../short-id.ts';
import { line, styled } from '../terminal/line.ts';
import { localTime } from '../terminal/local-time.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';

type Options = ConnectionOptions & { json?: boolean; all?: boolean };

const COLUMNS = [
  { title: 'ID' },
  { title: 'AGENT', least: 8 },
  { title: 'CALL', least: 20 },
  { title: 'LEFT' },
  { title: 'UNTIL' },
  { title: 'STATUS' },
  { title: 'APPROVED BY', least: 12 },
  { title: 'AT' },
];

const MAX = 200;

const read = async (api: OwnerApi, all: boolean): Promise<StandingApproval[]> =>
  (await api.ask('GET', `/owner/standing-approvals?limit=${MAX}&status=${all ? 'all' : 'in_force'}`))
    .standing_approvals;

export async function listStanding(options: Options): Promise<void> {
  const found = await read(await openOwnerApi(options), options.all === true);
  const short = shortIds(found.map(({ id }) => id));
  const rows = found.map((one) => [
    line`${short.get(one.id) ?? one.id}`,
    styled('bold', one.agent.name),
    line`${one.call?.text ?? `${one.method} ${one.path}`}`,
    line`${one.left} of ${one.count}`,
    line`${localTime(one.expires_at)}`,
    line`${one.status === 'in_force' ? 'in force' : one.status}`,
    line`${one.decided_by_email ?? 'a former owner'}`,
    line`${localTime(one.created_at)}`,
  ]);
  printResult(options, found, () =>
    rows.length === 0 ? [line`There are no standing approvals in force.`] : table(COLUMNS, rows, terminalWidth()),
  );
}

export async function revokeStanding(id: string, options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const found = findByPrefix(
    await read(api, false),
    id,
    ({ agent, call, path }) => `${agent.name}  ${call?.text ?? path}`,
  );
  if (!found)
    throw new CommandFailed(
      `No standing approval in force begins with ${id}. List them: ${api.command('standing list')}`,
    );
  const ended = await api.ask('DELETE', `/owner/standing-approvals/${found.id}`);
  printResult(options, ended, () => [line`Revoked. Calls like it are held again from the next one on.`]);
}
