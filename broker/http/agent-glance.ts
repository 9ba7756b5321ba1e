/** Lists of agents for owners: query parameters, cursor, and the summary of each agent. */
import { z } from 'zod';
import type { GlancedAgent, SoughtAgents, WholeAgent } from '../admin/agents/agent-pages.ts';
import { AGENT_STATUSES, type Instant } from '../policy/facts.ts';
import { PERIODS } from '../policy/limit.ts';
import { MAX_COUNTED } from '../store/agent-activity.ts';
import { AGENT_ORDERS, type AgentCursor, type AgentOrder, MAX_AGENTS_COUNTED } from '../store/agent-pages.ts';
import { text } from '../wire/action.ts';
import { Refusal } from './errors.ts';
import { AgentId, ListedAgent, listedAgentShown } from './owned/agent.ts';
import { cursorOf, readCursor, uuid, wholeNumber } from './query.ts';
import { instant } from './reply.ts';
import { WorkloadShown, workloadShown } from './workload.ts';

const Activity = z.object({
  last_call_at: z.iso.datetime().nullable().describe('with any result; null: it made none'),
  calls: z.int().describe(`in the last 24 hours; ${MAX_COUNTED} means that many or more`),
  refused: z.int().describe('of these calls'),
  held: z.int().describe('of these calls'),
  waiting_calls: z.int().describe('held calls that wait for a decision now'),
  waiting_requests: z.int().describe('its access requests that wait for a decision now'),
});

export const GlancedAgentShown = ListedAgent.extend({ activity: Activity }).meta({ id: 'GlancedAgent' });

export const WholeAgentShown = GlancedAgentShown.extend({
  owner_email: z.string().nullable(),
  policy_name: z.string().nullable().describe('of a child null: it is under its parent’s'),
  key_since: z.iso
    .datetime()
    .nullable()
    .describe(
      'since when it may have its key: when that replaced another one, else when the agent was made; null: it has none',
    ),
  workload: WorkloadShown.nullable().describe(
    'the workload whose tokens are accepted for it, in addition to those that it signs; null: none',
  ),
  limits: z
    .array(
      z.object({
        source: z.enum(['policy', 'guardrail']),
        rule: z.string(),
        most: z.number(),
        per: z.enum(PERIODS),
        of: z.string().nullable().describe('the expression that returns the amount of a call; null: calls are counted'),
        together: z.boolean().describe('of all agents together'),
        used: z.number().describe('in this period'),
        resets_at: z.iso.datetime().describe('when the next period begins'),
      }),
    )
    .describe('of the rules in force for it'),
  earlier: z
    .array(
      z.object({
        source: z.enum(['policy', 'guardrail']),
        rule: z.string().describe('its name, or what it says'),
        audit_id: z
          .guid()
          .nullable()
          .describe(
            'of the call because of which it applies; null: the store was restored, and what was done after the backup is not known',
          ),
        made_at: z.iso.datetime().describe('when that was'),
        until: z.iso.datetime().describe('when it stops applying, unless such a call is made again'),
      }),
    )
    .describe('the rules that apply because of what it did before'),
}).meta({ id: 'WholeAgent' });

export const AgentsTotal = z
  .int()
  .describe(`how many there are on all pages; ${MAX_AGENTS_COUNTED} means that many or more`);

export const glancedAgentShown = (one: GlancedAgent, now: Instant): z.output<typeof GlancedAgentShown> => {
  const { agent_id: _agent, last_call_at, ...counts } = one.activity;
  return { ...listedAgentShown(one, now), activity: { last_call_at: instant(last_call_at), ...counts } };
};

export const wholeAgentShown = (baseUrl: string, one: WholeAgent, now: Instant): z.output<typeof WholeAgentShown> => {
  const since = one.agent.key_fingerprint === null ? null : (one.keyReplacedAt ?? one.agent.created_at);
  return {
    ...glancedAgentShown(one, now),
    owner_email: one.owner_email,
    policy_name: one.policy_name,
    key_since: instant(since),
    workload: one.workload ? workloadShown(baseUrl, one.agent.agent_id, one.workload) : null,
    limits: one.limits.map(({ of = null, together = false, resetsAt, ...limit }) => ({
      ...limit,
      of,
      together,
      resets_at: new Date(resetsAt).toISOString(),
    })),
    earlier: one.earlier.map(({ source, rule, auditId, madeAt, until }) => ({
      source,
      rule,
      audit_id: auditId,
      made_at: new Date(madeAt).toISOString(),
      until: new Date(until).toISOString(),
    })),
  };
};

const LISTED_STATUSES = AGENT_STATUSES.filter((status) => status !== 'deleted');
const SORTS = AGENT_ORDERS.flatMap((order) => [order, `-${order}`] as const);
const MAX_WORDS = 8;

export const AGENTS_SOUGHT = {
  q: z.string().max(200).optional().describe('words that have to occur in the name, id, owner, policy or labels'),
  status: z.enum(LISTED_STATUSES, `one of ${LISTED_STATUSES.join(', ')}`).optional(),
  owner: uuid('the id of an owner').optional(),
  policy: uuid('the id of a policy').optional(),
  label: z.string().max(100).optional().describe('one of their labels'),
  parent: AgentId.max(64).optional().describe('the uuid or agent id of an agent whose children are meant'),
  sort: z
    .enum(SORTS, `one of ${SORTS.join(', ')}`)
    .optional()
    .describe('order; a leading minus reverses it: `-last_call` begins with the latest one. Default: `name`'),
  cursor: z.string().max(2000).optional().describe('continue here: `next` of the previous page, with the same `sort`'),
  limit: wholeNumber(1, 200).optional().describe('how many at most; 50 when left out'),
};

type Given = { [Name in keyof typeof AGENTS_SOUGHT]?: z.output<(typeof AGENTS_SOUGHT)[Name]> };

/**
 * Parses the query parameters of a search; undefined when there are none, so that all agents are returned in one response. Throws Refusal invalid_request.
 */
export function agentsSought(query: Given): SoughtAgents | undefined {
  if (Object.values(query).every((value) => value === undefined)) return undefined;
  const { q = '', sort = 'name', status, owner, policy, label, parent, cursor, limit = 50 } = query;
  const words = q.split(/\s+/).filter((word) => word !== '');
  if (words.length > MAX_WORDS) throw new Refusal('invalid_request', `q: too many words; send ${MAX_WORDS} at most.`);
  return {
    filter: { words, status, owner, policy, label: label?.normalize('NFC').toLowerCase(), parent },
    order: sort.replace('-', '') as AgentOrder,
    descending: sort.startsWith('-'),
    after: cursor === undefined ? undefined : agentCursor(cursor, sort),
    limit,
  };
}

export const cursorText = ({ key, id }: AgentCursor, sort = 'name'): string => cursorOf([sort, key, id]);

function agentCursor(text: string, sort: string): AgentCursor {
  const [sortOf, key, id] = readCursor(Cursor, text) ?? [];
  const isNumber = sort.endsWith('created');
  if (key === undefined || id === undefined || sortOf !== sort || isNumber !== (typeof key === 'number'))
    throw new Refusal('invalid_request', 'cursor: not one of a page with this sort; begin again without it.');
  return { key, id };
}

/** No database accepts other values as text or as a time. */
const Cursor = z.tuple([z.string(), z.union([text(1_000), z.int()]), z.guid()]);
