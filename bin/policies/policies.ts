/** Lists and shows policies, and simulates their verdict on a call. */
import type { Answer, Body } from '../../broker/console/answers.ts';
import type { RuleSource } from '../../broker/policy/facts.ts';
import { describeMask, describeRule } from '../../broker/policy/rules/describe.ts';
import type { ConnectionOptions } from '../connection.ts';
import { whereMissing } from '../failure.ts';
import { findAgent } from '../find-agent.ts';
import { findConnection } from '../find-named.ts';
import { fieldLines } from '../inbox/held-call-lines.ts';
import { readJsonBody } from '../json-option.ts';
import { openOwnerApi } from '../owner-api.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';

type Options = ConnectionOptions & { json?: boolean };
export type TryOptions = Options & {
  agent: string;
  platform: string;
  method: string;
  endpoint: string;
  scope?: string;
  connection?: string;
  body?: string;
  encoding?: string;
};
type Simulation = Answer<'POST', '/owner/simulate'>;

export async function listPolicies(options: Options): Promise<void> {
  const { policies } = await (await openOwnerApi(options)).ask('GET', '/owner/policies');
  const columns = [{ title: 'NAME', least: 10 }, { title: 'VERSION' }, { title: 'AGENTS' }];
  const rows = policies.map(({ name, version, agents }) => [line`${name}`, line`${version}`, line`${agents}`]);
  printResult(options, policies, () =>
    rows.length === 0 ? [line`There are no policies.`] : table(columns, rows, terminalWidth()),
  );
}

export async function showPolicy(name: string, options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const policy = await api
    .ask('GET', `/owner/policies/${encodeURIComponent(name)}`)
    .catch(whereMissing(`There is no policy ${name}. All of them: ${api.command('policy list')}`));
  printResult(options, policy, () => [
    line`${styled('bold', policy.name)}, version ${policy.version}, of ${policy.agents} agents`,
    ...rulesOf(policy).map((rule, i) => line`  ${rule.name ?? `rule ${i + 1}`}: ${describeRule(rule)}`),
    ...(policy.rules.length === 0 ? [line`  It has no rules: nothing is allowed.`] : []),
  ]);
}

/** Converts the type only: the broker validated the rules when they were written; the API declares them as JSON. */
const rulesOf = ({ rules }: Answer<'GET', '/owner/policies/x'>): RuleSource[] => rules as unknown as RuleSource[];

const VERDICTS = {
  allow: ['good', 'It would be made.'],
  require_approval: ['wait', 'It would be held for a person.'],
  deny: ['bad', 'It would be refused.'],
} as const;

export async function tryPolicy(options: TryOptions): Promise<void> {
  const data = options.body === undefined ? undefined : readJsonBody('--body', options.body);
  const api = await openOwnerApi(options);
  const agent = await findAgent(api, options.agent);
  const connection =
    options.connection === undefined
      ? undefined
      : findConnection(api, (await api.ask('GET', '/owner/connections')).connections, options.connection);
  const call = {
    agent_id: agent.agent_id,
    platform: options.platform,
    ...(connection && { connection_id: connection.id }),
    method: options.method.toUpperCase(),
    endpoint: options.endpoint,
    ...(options.scope !== undefined && { scope: options.scope }),
    ...(data !== undefined && { data }),
    ...(options.encoding !== undefined && { encoding: options.encoding }),
  };
  const simulation = await api.ask('POST', '/owner/simulate', call as Body<'POST', '/owner/simulate'>);
  const rules = simulation.policy?.id ? rulesOf(await api.ask('GET', `/owner/policies/${simulation.policy.id}`)) : [];
  printResult(options, simulation, () => linesOf(simulation, rules));
}

function linesOf(simulation: Simulation, rules: readonly RuleSource[]): Line[] {
  const { decision, reason, detail, scope, matched, policy, guardrails } = simulation;
  const { violating = [], not_evaluated: left } = simulation;
  const [style, words] = VERDICTS[decision];
  const width = terminalWidth();
  const said = matched.map(
    ({ source, name, effect, error }) =>
      `${source} ${inFull(name, source, rules)}: ${effect.replaceAll('_', ' ')}${error ? ` (its condition failed: ${error})` : ''}`,
  );
  return [
    styled(style, words),
    ...fieldLines('Why', detail, width),
    ...fieldLines('Reason', reason, width),
    ...(scope === null ? [] : fieldLines('Scope', scope, width)),
    ...said.flatMap((each, i) => fieldLines(i === 0 ? 'Rules' : '', each, width)),
    ...(violating.length > 0 ? fieldLines('Not allowed', violating.join(', '), width) : []),
    ...(simulation.mask ? fieldLines('Masked', `${describeMask(simulation.mask)}, in what it is answered`, width) : []),
    ...(simulation.suspends ? fieldLines('Suspends', `the agent, by the guardrail ${simulation.suspends}`, width) : []),
    ...fieldLines(
      'Policy',
      policy ? `${policy.name}${policy.version === null ? '' : `, version ${policy.version}`}` : 'none',
      width,
    ),
    ...fieldLines('Guardrails', guardrails.version === null ? 'none' : `version ${guardrails.version}`, width),
    ...(left.length > 0 ? fieldLines('Not checked', left.join(', ').replaceAll('_', ' '), width) : []),
    ...simulation.warnings.map((each) => styled('wait', line`Warning: ${each}`)),
  ];
}

/** Appends the content of a rule that has no name. */
function inFull(name: string, source: string, rules: readonly RuleSource[]): string {
  const [, number] = /^rule (\d+)$/.exec(name) ?? [];
  const rule = source === 'policy' && number !== undefined ? rules[Number(number) - 1] : undefined;
  return rule ? `${name} (${describeRule(rule)})` : name;
}
