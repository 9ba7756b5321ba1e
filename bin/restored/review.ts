/** Shows the content of a restored store, and ends its review, through the owner API. */
import { commandWith } from '../command-with.ts';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { localTime } from '../terminal/local-time.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';

type Options = ConnectionOptions & { reason?: string; json?: boolean };

export async function printReview(options: Options): Promise<void> {
  const found = await (await openOwnerApi(options)).ask('GET', '/owner/restored');
  const { restored, agents, owners, pipelines, workloads, passkeys, static_keys: keys, person_tokens: tokens } = found;
  const section = (title: string, columns: { title: string }[], rows: Line[][]): Line[] =>
    rows.length === 0
      ? [line`No ${title}.`, line``]
      : [styled('bold', title), ...table(columns, rows, terminalWidth()), line``];
  const when = (moment: string | null) => line`${moment === null ? '-' : localTime(moment)}`;
  const state =
    restored === null
      ? line`No restored store is waiting for a review. These can act:`
      : line`Restored ${localTime(restored.at)}${restored.backup_made_at === null ? '' : ` from a backup of ${localTime(restored.backup_made_at)}`}. No call is made.`;
  printResult(options, found, () => [
    state,
    line``,
    ...section(
      'agents',
      [{ title: 'AGENT' }, { title: 'NAME' }, { title: 'STATUS' }, { title: 'OWNER' }, { title: 'MAY' }],
      agents.map(({ agent_id, name, status, owner, grants }) => [
        line`${agent_id}`,
        line`${name}`,
        line`${status}`,
        line`${owner ?? '-'}`,
        line`${grants.map(({ platform, scopes }) => `${platform}: ${scopes.join(' ')}`).join('; ') || '-'}`,
      ]),
    ),
    ...section(
      'owners',
      [{ title: 'OWNER' }, { title: 'ROLE' }],
      owners.map(({ email, role }) => [line`${email}`, line`${role}`]),
    ),
    ...section(
      'pipelines',
      [{ title: 'PIPELINE' }, { title: 'ROLE' }, { title: 'SUBJECT' }, { title: 'ISSUER' }],
      pipelines.map((one) => [line`${one.name}`, line`${one.role}`, line`${one.subject}`, line`${one.issuer}`]),
    ),
    ...section(
      'workloads',
      [{ title: 'AGENT' }, { title: 'SUBJECT' }, { title: 'ISSUER' }],
      workloads.map((one) => [line`${one.agent_id}`, line`${one.subject}`, line`${one.issuer}`]),
    ),
    ...section(
      'passkeys',
      [{ title: 'OWNER' }, { title: 'DEVICE' }, { title: 'STATUS' }, { title: 'LAST USED' }],
      passkeys.map((one) => [
        line`${one.owner ?? '-'}`,
        line`${one.device_name}`,
        line`${one.status}${one.counter_unknown ? ', its counter is of then' : ''}`,
        when(one.last_used_at),
      ]),
    ),
    ...section(
      'static keys',
      [{ title: 'AGENT' }, { title: 'LABEL' }, { title: 'UNTIL' }],
      keys.map((one) => [line`${one.agent_id}`, line`${one.label}`, when(one.expires_at)]),
    ),
    ...section(
      'tokens of people',
      [{ title: 'PERSON' }, { title: 'PLATFORM' }, { title: 'STATUS' }, { title: 'LAST USED' }],
      tokens.map((one) => [
        line`${one.person_id}`,
        line`${one.platform}`,
        line`${one.standing === 'kept' ? one.status : one.standing}`,
        when(one.last_used_at),
      ]),
    ),
    ...(restored === null
      ? []
      : [line`Suspend or revoke what was suspended or revoked since, then: ${commandWith(options, 'restored --end')}`]),
  ]);
}

export async function endReview(options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const { restored } = await api.ask('GET', '/owner/restored');
  if (restored === null) throw new CommandFailed('No restored store is waiting for a review.');
  const words = options.reason === undefined ? {} : { reason: options.reason };
  const ended = await api.ask('POST', '/owner/restored/end', { restored_at: restored.at, ...words });
  printResult(options, ended, () => [line`Reviewed. Calls are enabled again.`]);
}
