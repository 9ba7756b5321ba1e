/** Issues, lists and revokes static keys of an agent, through the owner API. */
import type { IssuedStaticKey, StaticKey } from '../../broker/console/answers.ts';
import type { ConnectionOptions } from '../connection.ts';
import type { Lasting } from '../duration.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { agentIdOf } from '../find-agent.ts';
import { openOwnerApi } from '../owner-api.ts';
import { commandLine } from '../server-entry.ts';
import { findByPrefix, shortIds } from '../short-id.ts';
import { line, styled } from '../terminal/line.ts';
import { localTime } from '../terminal/local-time.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';

export type StaticKeyOptions = ConnectionOptions & {
  json?: boolean;
  connection: string;
  label: string;
  expires?: Lasting;
};

/** The broker's own limit (broker/admin/agents/static-keys.ts). */
const MAX_DAYS = 90;

const pathOf = (agentId: string) => `/owner/agents/${encodeURIComponent(agentId)}/static-keys` as const;

export async function issueStaticKey(given: string, options: StaticKeyOptions): Promise<void> {
  const { connection, label, expires } = options;
  if (expires === 'never' || (expires !== undefined && expires > MAX_DAYS * 86_400))
    throw new WrongUsage(`--expires: a static key lives for ${MAX_DAYS} days at most.`);
  const api = await openOwnerApi(options);
  const path = pathOf(await agentIdOf(api, given));
  const body = { connection, label, ...(expires !== undefined && { expires_in_seconds: expires }) };
  const made = (await api.ask('POST', path, body)) as IssuedStaticKey;
  printResult(options, made, () => [
    line`${made.key}`,
    line`Shown once, good until ${localTime(made.expires_at)}, below ${made.url}/ only.`,
    line`Anybody who has the key can act as the agent on this connection until then: use it only for clients that can neither sign nor be started by agent-broker run.`,
  ]);
}

const COLUMNS = [
  { title: 'ID' },
  { title: 'LABEL', least: 10 },
  { title: 'CONNECTION', least: 10 },
  { title: 'STATUS' },
  { title: 'EXPIRES' },
  { title: 'LAST USED' },
];

export async function listStaticKeys(given: string, options: ConnectionOptions & { json?: boolean }): Promise<void> {
  const api = await openOwnerApi(options);
  const { static_keys: keys } = await api.ask('GET', pathOf(await agentIdOf(api, given)));
  const short = shortIds(keys.map(({ id }) => id));
  const rows = keys.map((key) => [
    line`${short.get(key.id) ?? key.id}`,
    styled('bold', key.label),
    line`${key.connection.label ?? key.connection.id}`,
    line`${key.status}`,
    line`${localTime(key.expires_at)}`,
    line`${key.last_used_at === null ? 'never' : localTime(key.last_used_at)}`,
  ]);
  printResult(options, keys, () =>
    rows.length === 0 ? [line`There are no static keys of this agent.`] : table(COLUMNS, rows, terminalWidth()),
  );
}

export async function revokeStaticKey(
  given: string,
  id: string,
  options: ConnectionOptions & { json?: boolean },
): Promise<void> {
  const api = await openOwnerApi(options);
  const path = pathOf(await agentIdOf(api, given));
  const { static_keys: keys } = await api.ask('GET', path);
  const known = findByPrefix<StaticKey>(keys, id, ({ label, status }) => `${label}  ${status}`);
  if (!known)
    throw new CommandFailed(
      `The agent has no static key ${id}. All of them: ${api.command(`agent static-key list ${commandLine([given])}`)}`,
    );
  const ended = await api.ask('DELETE', `${path}/${known.id}`);
  printResult(options, ended, () => [line`The static key ${styled('bold', ended.label)} is refused from now on.`]);
}
