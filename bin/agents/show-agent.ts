/** Shows an agent in full: its properties, permissions and latest calls. */
import type { Agent, OwnedGrant, WholeAgent } from '../../broker/console/answers.ts';
import { CONTAINED, STATUS } from '../../broker/console/static/agents/status-labels.js';
import { limitOf } from '../../broker/console/static/policies/effects.js';
import { formatDuration } from '../../broker/console/static/shell/duration.js';
import { readOwners, readRows } from '../activity/read-rows.ts';
import { lineOfRow } from '../activity/row-line.ts';
import type { ConnectionOptions } from '../connection.ts';
import { findAgent } from '../find-agent.ts';
import { grantLines } from '../grants/grant-lines.ts';
import { fieldLines } from '../inbox/held-call-lines.ts';
import { findWaiting, titleOf } from '../inbox/waiting.ts';
import { type OwnerApi, openOwnerApi, pagesOf } from '../owner-api.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { localTime } from '../terminal/local-time.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';

/** Reasons of audit rows that record when an agent got its current key. */
const BINDING = ['agent_bound', 'agent_invited', 'registration_key_claimed'];

export async function showAgent(given: string, options: ConnectionOptions & { json?: boolean }): Promise<void> {
  const api = await openOwnerApi(options);
  const agent = await findAgent(api, given);
  const [children, { workload, limits, earlier }, { policies }, { grants }, owners, [last], waiting, keySince] =
    await Promise.all([
      childrenOf(api, agent),
      api.ask('GET', `/owner/agents/${agent.agent_id}`),
      api.ask('GET', '/owner/policies'),
      api.ask('GET', `/owner/agents/${agent.agent_id}/grants`),
      readOwners(api),
      readRows(api, { agent: agent.agent_id, kind: 'action' }, 1),
      waitingOf(api, agent),
      boundAt(api, agent),
    ]);
  const policy = policies.find(({ id }) => id === agent.policy_id)?.name ?? null;
  const owner = owners.get(agent.owner_id) ?? agent.owner_id;
  const whole = {
    ...agent,
    owner,
    policy,
    key_since: keySince,
    workload,
    limits,
    earlier,
    grants,
    last_call: last ?? null,
    waiting,
    children,
  };
  const width = terminalWidth();
  printResult(options, whole, () => [
    line`${styled('bold', agent.name)}  ${agent.agent_id}`,
    ...fieldLines('Status', statusOf(agent), width),
    ...fieldLines('Owner', owner, width),
    ...(agent.parent_agent_id ? fieldLines('Parent', agent.parent_agent_id, width) : []),
    ...(agent.expires_at ? fieldLines('Until', localTime(agent.expires_at), width) : []),
    ...fieldLines('Key', keyOf(agent.key_fingerprint, keySince), width),
    ...(workload ? fieldLines('Workload', `${workload.subject} of ${workload.issuer}`, width) : []),
    ...(workload ? fieldLines('Audience', workload.audience, width) : []),
    ...fieldLines(
      'Policy',
      policy ?? (agent.parent_agent_id ? 'that of its parent' : 'none: nothing is allowed'),
      width,
    ),
    ...grantFacts(grants, width),
    ...limits.flatMap((limit, i) => fieldLines(i === 0 ? 'Limits' : '', describeLimit(limit), width)),
    ...earlier.flatMap((one, i) => fieldLines(i === 0 ? 'Applies' : '', describeEarlier(one), width)),
    ...waiting.flatMap(({ short, what }, i) => fieldLines(i === 0 ? 'Waits' : '', `${short}  ${what}`, width)),
    ...children.flatMap((child, i) =>
      fieldLines(
        i === 0 ? 'Children' : '',
        `${child.name}  ${child.agent_id}  ${child.contained ?? child.status}`,
        width,
      ),
    ),
    ...(last
      ? [line`${styled('quiet', 'Last call  ')} ${lineOfRow(last, owners, width - 12)}`]
      : fieldLines('Last call', 'none yet', width)),
  ]);
}

function grantFacts(grants: readonly OwnedGrant[], width: number): Line[] {
  if (grants.length === 0) return fieldLines('Granted', 'nothing', width);
  return grants.flatMap(grantLines).flatMap((each, i) => fieldLines(i === 0 ? 'Granted' : '', each, width));
}

const describeLimit = (limit: WholeAgent['limits'][number]): string =>
  `${limit.rule} (${limit.source}): ${limit.used} of ${limitOf(limit)} used, until ${localTime(limit.resets_at)}`;

const describeEarlier = (one: WholeAgent['earlier'][number]): string =>
  `${one.rule} (${one.source}) until ${localTime(one.until)}, because ${one.audit_id === null ? 'the store was restored' : `of the call ${one.audit_id}`}`;

function statusOf(agent: Agent): string {
  const { words } = STATUS[agent.status];
  const since = agent.status_since ? ` since ${localTime(agent.status_since)}` : '';
  const why = agent.status_detail ? `: ${agent.status_detail}` : '';
  const contained = agent.contained ? `; ${CONTAINED[agent.contained].words}` : '';
  const breakers = agent.breakers.map(
    ({ cause, about, retry_after_seconds: left }) =>
      `; calls${about ? ` to ${about}` : ''} are refused for ${formatDuration(left * 1000)} (${cause.replaceAll('_', ' ')})`,
  );
  return `${words}${since}${why}${contained}${breakers.join('')}`;
}

function keyOf(fingerprint: string | null, since: string | null): string {
  if (fingerprint === null) return 'none';
  return `${fingerprint}${since ? `, for ${formatDuration(Math.max(0, Date.now() - Date.parse(since)))}` : ''}`;
}

async function waitingOf(api: OwnerApi, agent: Agent): Promise<{ id: string; short: string; what: string }[]> {
  const all = await findWaiting(api, { role: 'viewer' });
  return all
    .filter(
      (one) => 'agent' in one.item && typeof one.item.agent === 'object' && one.item.agent?.agent_id === agent.agent_id,
    )
    .map((one) => ({ id: one.id, short: one.short, what: titleOf(one).text }));
}

/** Returns the agent's children, oldest first; ended ones for a day. */
const childrenOf = (api: OwnerApi, { agent_id }: Agent): Promise<Agent[]> =>
  pagesOf(async (cursor) => {
    const from = cursor === undefined ? '' : `&cursor=${cursor}`;
    const { agents, next = null } = await api.ask(
      'GET',
      `/owner/agents?parent=${agent_id}&sort=created&limit=200${from}`,
    );
    return { items: agents, next };
  });

/** Returns when the agent got its key, or null without an audit row about that, as for keys from a governance file. */
async function boundAt(api: OwnerApi, agent: Agent): Promise<string | null> {
  const found = await Promise.all(
    BINDING.map(async (reason) => (await readRows(api, { agent: agent.agent_id, reason }, 1))[0]?.created_at),
  );
  return (
    found
      .filter((at) => at !== undefined)
      .toSorted()
      .at(-1) ?? null
  );
}
