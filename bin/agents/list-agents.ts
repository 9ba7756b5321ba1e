/** Lists the organisation's agents, one line each. */
import type { ConnectionOptions } from '../connection.ts';
import { openOwnerApi } from '../owner-api.ts';
import { line, styled } from '../terminal/line.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';

const COLUMNS = [{ title: 'NAME', least: 10 }, { title: 'AGENT ID' }, { title: 'OWNER ID' }, { title: 'STATUS' }];

export async function listAgents(options: ConnectionOptions & { json?: boolean }): Promise<void> {
  const { agents } = await (await openOwnerApi(options)).ask('GET', '/owner/agents');
  const rows = agents.map(({ name, agent_id, owner_id, status }) => [
    styled('bold', name),
    line`${agent_id}`,
    line`${owner_id}`,
    line`${status}`,
  ]);
  printResult(options, agents, () =>
    rows.length === 0 ? [line`There are no agents yet.`] : table(COLUMNS, rows, terminalWidth()),
  );
}
