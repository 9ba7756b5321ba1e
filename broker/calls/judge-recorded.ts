/**
 * Judges recorded calls by other rules. An audit row holds neither query nor headers nor body: a rule that uses them cannot be evaluated,
 * unless the call was held and its sealed request still exists.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { readHeldRequest } from '../approvals/held-call.ts';
import { actionOf, callerOf, rawOf } from '../approvals/held-request.ts';
import type { Uses } from '../broker.ts';
import type { FactsLoader, LoadedFacts } from '../facts/facts.ts';
import type { Ask, Facts } from '../policy/facts.ts';
import { lookBackRules } from '../policy/look-back.ts';
import { type RuleOutcome, ruleOutcome } from '../policy/rules/outcome.ts';
import { UNLIMITED } from '../runtime/long-bodies.ts';
import { findAuditRows } from '../store/audit-search.ts';
import { ANY_ADDRESS } from '../store/facts-breakers.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { findHeldCall } from '../store/held-calls.ts';
import { toolOnFile, withEffect } from './mcp/tool-on-file.ts';
import { heldRaw } from './raw-request.ts';
import { askOf, readCall } from './read-call.ts';
import { type CallRow, isWhole, recordedAsk } from './recorded-ask.ts';
import { seenCalls } from './seen-calls.ts';

type Services = Uses<'clock' | 'log' | 'store' | 'vault'> & { facts: FactsReader; loadFacts: FactsLoader };

/** `replace`: returns the facts with the proposed rules; undefined when these rules do not concern the agent. */
export type Judging = {
  organisationId: string;
  /** Start of the period, in milliseconds since the epoch. */
  since: number;
  replace(facts: Facts): Facts | undefined;
};

/** A call with a different result under the proposed rules: its row, and the deciding rules before and after. */
export type JudgedCall = { row: CallRow; agentName: string; before: RuleOutcome; after: RuleOutcome };

export type Change = {
  before: RuleOutcome['effect'];
  after: RuleOutcome['effect'];
  calls: number;
  /** Up to EXAMPLES of them, newest first. */
  examples: JudgedCall[];
};

export type Judged = {
  /** Number of calls of these agents that were examined. */
  calls: number;
  /** Of these, the calls whose result stays, changes, or cannot be determined. */
  same: number;
  changed: number;
  cannotTell: number;
  changes: Change[];
  /** Rows before this moment were not examined; null when all were. */
  reachedOnly: number | null;
};

const PAGE = 500;
/** Most rows that are read, and most sealed requests that are opened. */
const MAX_ROWS = 20_000;
const MAX_OPENED = 2_000;
const TIME_LIMIT_MS = 5_000;
const EXAMPLES = 5;
/** Yields to other requests after so many calls. */
const CALLS_PER_TURN = 50;

/** Judges recorded calls, newest first, by the rules in force and by proposed ones, with today's grants and platforms. */
export async function judgeRecorded(services: Services, { organisationId, since, replace }: Judging): Promise<Judged> {
  const { broker } = services;
  const factsOf = factsByAgent(services);
  const judged: Judged = { calls: 0, same: 0, changed: 0, cannotTell: 0, changes: [], reachedOnly: null };
  const began = performance.now();
  const calls = seenCalls();
  const waiting: Recorded[] = [];
  let left = MAX_OPENED;
  let seen = 0;
  let beyond: string | undefined;
  do {
    const filter = { kind: 'action' as const, since, final: true };
    const page = await findAuditRows(broker.store.db, organisationId, filter, {
      order: 'newest_first',
      beyond,
      limit: PAGE,
    });
    for (const row of page.rows) {
      if (!isWhole(row)) continue;
      const loaded = await factsOf(row);
      const proposed = loaded && replace(loaded.facts);
      if (!loaded || !proposed) continue;
      const rules = [loaded.facts, proposed].filter((facts) => lookBackRules(facts).length > 0);
      if (rules.length > 0 && wasMade(row))
        calls.note(rules, await recordedAsk(services, row, loaded), { at: row.created_at, auditId: row.id });
      if (!isCall(row)) continue;
      const opens = row.result === 'held' && left > 0;
      if (opens) left--;
      const one = { row, loaded, proposed, opens };
      // Look-back rules need older calls, which are read later: judge this call after the scan.
      if (rules.length > 0) waiting.push(one);
      else note(judged, await judge(services, one));
      if (++seen % CALLS_PER_TURN === 0) await turn();
    }
    beyond = page.reached ?? undefined;
    const looked = page.rows.at(-1);
    if (looked && (seen >= MAX_ROWS || performance.now() - began > TIME_LIMIT_MS) && beyond !== undefined) {
      judged.reachedOnly = looked.created_at;
      break;
    }
  } while (beyond !== undefined);
  const reached = judged.reachedOnly ?? since;
  for (const [i, one] of waiting.entries()) {
    note(
      judged,
      await judge(services, one, (facts, ask) => calls.withEarlier(facts, ask, one.row.created_at, reached)),
    );
    if (i % CALLS_PER_TURN === 0) await turn();
  }
  return judged;
}

const BY_RULES: ReadonlySet<string> = new Set(['denied_by_policy', 'denied_by_guardrail', 'no_policy_assigned']);

/** `opens`: whether the sealed request of a held call is read. */
type Recorded = { row: CallRow; loaded: LoadedFacts; proposed: Facts; opens: boolean };

/** Whether rules decided this call; the replay of a held call was decided when it was held. */
function isCall({ approval_id, result, reason }: CallRow): boolean {
  if (approval_id !== null && result !== 'held') return false;
  // Other refusals do not depend on rules, and would be the same.
  return result !== 'denied' || BY_RULES.has(reason);
}

/** Whether the call was about to be sent: look-back rules then apply, whatever its outcome. */
const wasMade = ({ result, reason, upstream_status: status }: CallRow): boolean =>
  result === 'allowed' || status !== null || reason === 'outcome_unknown' || reason === 'upstream_unreachable';

/** Loads today's facts once for each agent and platform; undefined when the agent no longer exists. */
function factsByAgent({ broker, facts, loadFacts }: Services) {
  const kept = new Map<string, Promise<LoadedFacts | undefined>>();
  const now = broker.clock();
  const load = async (agentId: string, platform: string): Promise<LoadedFacts | undefined> => {
    const rows = await facts(agentId, platform, ANY_ADDRESS);
    return rows.length === 0 ? undefined : await loadFacts(rows, now);
  };
  return ({ agent_public_id: agent, platform_id: platform }: CallRow) => {
    const key = `${agent} ${platform}`;
    const found = kept.get(key) ?? load(agent, platform);
    kept.set(key, found);
    return found;
  };
}

async function judge(
  services: Services,
  { row, loaded, proposed, opens }: Recorded,
  looking: (facts: Facts, ask: Ask) => Ask = (_facts, ask) => ask,
): Promise<JudgedCall> {
  const known = opens ? await heldAsk(services, row, loaded) : undefined;
  const ask = known
    ? withEffect(known, await toolOnFile(services, row.organisation_id, loaded.platform, known))
    : await recordedAsk(services, row, loaded);
  const at = row.created_at;
  const { name: agentName } = loaded.facts.agent;
  const by = (facts: Facts) => ruleOutcome(facts, looking(facts, ask), at);
  return { row, agentName, before: by(loaded.facts), after: by(proposed) };
}

/** Returns the whole ask of a held call; undefined when its request is gone or is not well-formed any more. */
async function heldAsk(services: Services, row: CallRow, loaded: LoadedFacts) {
  if (row.approval_id === null) return undefined;
  const held = await findHeldCall(services.broker.store.db, row.organisation_id, row.approval_id);
  const request = held && readHeldRequest(services, held);
  if (!request) return undefined;
  const action = actionOf(request);
  const sealed = rawOf(request);
  const raw = sealed && (await heldRaw(action, sealed, UNLIMITED));
  const read = await readCall(action, loaded, { isGit: false, raw, parsing: UNLIMITED });
  if (!read.ok) return undefined;
  const caller = callerOf(request);
  const ask = askOf(action, { ...read.call, raw });
  const by = caller && { caller: { verified: caller.verified } };
  return { ...ask, call: { ...ask.call, ...by, recorded: 'request' as const } };
}

function note(judged: Judged, call: JudgedCall): void {
  const { before, after } = call;
  judged.calls++;
  if (before.effect === 'cannot_tell' || after.effect === 'cannot_tell') judged.cannotTell++;
  else if (before.effect === after.effect) judged.same++;
  else {
    judged.changed++;
    let change = judged.changes.find((one) => one.before === before.effect && one.after === after.effect);
    if (!change) {
      change = { before: before.effect, after: after.effect, calls: 0, examples: [] };
      judged.changes.push(change);
    }
    change.calls++;
    if (change.examples.length < EXAMPLES) change.examples.push(call);
  }
}
