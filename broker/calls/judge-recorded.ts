/**
 * What other rules would have made of the calls that are on record. A row holds neither query nor headers nor body: where a rule reads
 * them, that cannot be told, unless the call was held and its sealed request is still there.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { readHeldRequest } from '../approvals/held-call.ts';
import { actionOf, callerOf, rawOf } from '../approvals/held-request.ts';
import type { Uses } from '../broker.ts';
import type { FactsLoader, LoadedFacts } from '../facts/facts.ts';
import type { Ask, Facts } from '../policy/facts.ts';
import { lookingIn } from '../policy/look-back.ts';
import { type RuleOutcome, ruleOutcome } from '../policy/rule-outcome.ts';
import { inTurn } from '../runtime/long-bodies.ts';
import { findAuditRows } from '../store/audit-search.ts';
import { ANY_ADDRESS } from '../store/facts-breakers.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { findHeldCall } from '../store/held-calls.ts';
import { heldRaw } from './raw-request.ts';
import { askOf, readCall } from './read-call.ts';
import { type CallRow, isWhole, recordedAsk } from './recorded-ask.ts';
import { seenCalls } from './seen-calls.ts';
import { toolOnFile, withEffect } from './tool-on-file.ts';

type Services = Uses<'clock' | 'log' | 'store' | 'vault'> & { facts: FactsReader; loadFacts: FactsLoader };

/** `replace`: the facts with the proposed rules; undefined: they are not about this agent. */
export type Judging = {
  organisationId: string;
  /** From then on, in milliseconds since the epoch. */
  since: number;
  replace(facts: Facts): Facts | undefined;
};

/** One that the proposed rules judge otherwise; its row, and the rules that decide. */
export type JudgedCall = { row: CallRow; agentName: string; before: RuleOutcome; after: RuleOutcome };

export type Change = {
  before: RuleOutcome['effect'];
  after: RuleOutcome['effect'];
  calls: number;
  /** Some of them, the newest first. */
  examples: JudgedCall[];
};

export type Judged = {
  /** How many calls of these agents were looked at. */
  calls: number;
  /** Of them those whose result stays, those that change, and those of which it cannot be told. */
  same: number;
  changed: number;
  cannotTell: number;
  changes: Change[];
  /** Rows before this moment were not looked at; null: all were. */
  reachedOnly: number | null;
};

const PAGE = 500;
/** Of all rows, and of those that are opened. */
const MOST_ROWS = 20_000;
const MOST_OPENED = 2_000;
const PATIENCE_MS = 5_000;
const EXAMPLES = 5;
/** Other requests get their turn after so many calls. */
const IN_A_ROW = 50;

/** Judges recorded calls, the newest first, by the rules in force and by proposed ones, on the grants and platforms of today. */
export async function judgeRecorded(services: Services, { organisationId, since, replace }: Judging): Promise<Judged> {
  const { broker } = services;
  const factsOf = factsByAgent(services);
  const judged: Judged = { calls: 0, same: 0, changed: 0, cannotTell: 0, changes: [], reachedOnly: null };
  const began = performance.now();
  const calls = seenCalls();
  const waiting: Recorded[] = [];
  let left = MOST_OPENED;
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
      const rules = [loaded.facts, proposed].filter((facts) => lookingIn(facts).length > 0);
      if (rules.length > 0 && wasMade(row))
        calls.note(rules, await recordedAsk(services, row, loaded), { at: row.created_at, auditId: row.id });
      if (!isCall(row)) continue;
      const opens = row.result === 'held' && left > 0;
      if (opens) left--;
      const one = { row, loaded, proposed, opens };
      // What it is looked back at from it is read after it.
      if (rules.length > 0) waiting.push(one);
      else note(judged, await judge(services, one));
      if (++seen % IN_A_ROW === 0) await turn();
    }
    beyond = page.reached ?? undefined;
    const looked = page.rows.at(-1);
    if (looked && (seen >= MOST_ROWS || performance.now() - began > PATIENCE_MS) && beyond !== undefined) {
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
    if (i % IN_A_ROW === 0) await turn();
  }
  return judged;
}

const BY_RULES: ReadonlySet<string> = new Set(['denied_by_policy', 'denied_by_guardrail', 'no_policy_assigned']);

/** `opens`: whether the sealed request of a held call is to be read. */
type Recorded = { row: CallRow; loaded: LoadedFacts; proposed: Facts; opens: boolean };

/** A call that was decided by rules; the replay of a held one was decided when it was held. */
function isCall({ approval_id, result, reason }: CallRow): boolean {
  if (approval_id !== null && result !== 'held') return false;
  // Whatever else refused it would refuse it still.
  return result !== 'denied' || BY_RULES.has(reason);
}

/** Whether it was about to be sent: rules look back at it then, whatever came of it. */
const wasMade = ({ result, reason, upstream_status: status }: CallRow): boolean =>
  result === 'allowed' || status !== null || reason === 'outcome_unknown' || reason === 'upstream_unreachable';

/** The facts of today, read once for each agent and platform; undefined: there is no such agent any more. */
function factsByAgent({ broker, facts, loadFacts }: Services) {
  const kept = new Map<string, Promise<LoadedFacts | undefined>>();
  const now = broker.clock();
  const load = async (agentId: string, platform: string): Promise<LoadedFacts | undefined> => {
    const rows = await facts(agentId, platform, ANY_ADDRESS);
    return rows.length === 0 ? undefined : await loadFacts(rows, platform, now);
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

/** The whole of a held call; undefined: its request is gone, or is none any more. */
async function heldAsk(services: Services, row: CallRow, loaded: LoadedFacts) {
  if (row.approval_id === null) return undefined;
  const held = await findHeldCall(services.broker.store.db, row.organisation_id, row.approval_id);
  const request = held && readHeldRequest(services, held);
  if (!request) return undefined;
  const action = actionOf(request);
  const sealed = rawOf(request);
  const raw = sealed && (await heldRaw(action, sealed, inTurn));
  const read = await readCall(action, loaded, { isGit: false, raw, parsing: inTurn });
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
