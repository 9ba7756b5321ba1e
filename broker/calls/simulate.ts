/** Simulates a call: decides it on the current facts, without writing, counting or sending anything. */

import type { Uses } from '../broker.ts';
import type { FactsLoader, LoadedFacts } from '../facts/facts.ts';
import { decide, decideAgent } from '../policy/decide.ts';
import { ALL_PLATFORMS, type Ask, type CallAsk, type GitAsk, type RuleSource, type Verdict } from '../policy/facts.ts';
import { compileGuardrails, compilePolicy } from '../policy/rules/compile.ts';
import { UNLIMITED } from '../runtime/long-bodies.ts';
import { present } from '../runtime/present.ts';
import { ANY_ADDRESS } from '../store/facts-breakers.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { Action } from '../wire/action.ts';
import { decideCall } from './decide-call.ts';
import { type EarlierCalls, withPast } from './earlier-calls.ts';
import {
  type ToolOnFile,
  toolOnFile,
  unlikeAccepted,
  whyAbsent,
  whyQuarantined,
  withEffect,
} from './mcp/tool-on-file.ts';
import { inferScope, naming } from './raw-scope.ts';
import { askOf, type ReadCall, readCall } from './read-call.ts';
import type { AgentSeenValues } from './seen-values.ts';

/**
 * `policy` and `guardrails`: rules to decide by instead of those in force; already accepted by `readRules`. `withStanding`: standing approvals count as
 * for a call to `POST /v1/actions` without a session.
 */
export type Proposed = {
  policy?: readonly RuleSource[];
  guardrails?: readonly RuleSource[];
  withStanding?: boolean;
};

const NONE_SPENT: ReadonlySet<string> = new Set();

/** `action` without a scope: it is inferred, as for a raw request. `git`: what the git entry point would have read of it. `caller`: for whom it is, on platforms that honour callers. */
export type SimulatedAction = {
  action: Omit<Action, 'scope'> & { scope?: string | undefined };
  git?: GitAsk;
  caller?: CallAsk['caller'] | undefined;
};

/** `version` null: proposed, not in force. */
export type Simulated =
  | {
      kind: 'decided';
      verdict: Verdict;
      policy: { id: string | null; name: string; version: number | null } | null;
      guardrails: { version: number | null };
      /** The parsed call; undefined when it is malformed and its agent may make no call anyway. */
      read: { call: Extract<ReadCall, { ok: true }>['call']; ask: Ask; onFile: ToolOnFile | undefined } | undefined;
      loaded: LoadedFacts;
      /** The store was restored and not reviewed yet: no call is made. */
      isUnreviewed: boolean;
    }
  | { kind: 'invalid'; refused: Extract<ReadCall, { ok: false }> };

/**
 * Decides a call as if its agent had made it now. The agent's open breakers count, for any source address; a half-open breaker lets the
 * call pass, and its trial is not claimed.
 *
 * @param agentId `agt_…`, an existing agent
 */
export async function simulate(
  services: Uses<'clock' | 'store'> & {
    facts: FactsReader;
    loadFacts: FactsLoader;
    seenValues: AgentSeenValues;
    earlierCalls: EarlierCalls;
  },
  agentId: string,
  { action, git, caller }: SimulatedAction,
  proposed: Proposed,
): Promise<Simulated> {
  const now = services.broker.clock();
  // `*` is not a platform id; as one it would mean all platforms.
  const platform = action.platform === ALL_PLATFORMS ? '' : action.platform;
  const rows = await services.facts(agentId, platform, ANY_ADDRESS);
  const loaded = await services.loadFacts(rows, now);
  const named = { ...action, scope: action.scope ?? '' };
  const read = await readCall(named, loaded, { isGit: git !== undefined, parsing: UNLIMITED });
  const stopped = read.ok ? undefined : decideAgent(loaded.facts, now);
  if (!read.ok && !stopped) return { kind: 'invalid', refused: read };
  const { policy: inForce, guardrails, ...others } = loaded.facts;
  const policy = proposed.policy
    ? compilePolicy({ id: inForce?.id ?? '', name: inForce?.name ?? 'proposed', version: 0, rules: proposed.policy })
    : inForce;
  const facts = {
    ...others,
    ...(policy && { policy }),
    guardrails: proposed.guardrails ? compileGuardrails({ version: 0, rules: proposed.guardrails }) : guardrails,
  };
  const asked = read.ok ? askOf(named, read.call) : undefined;
  const unscoped = asked && { ...asked, call: { ...asked.call, ...(git && { git }), ...(caller && { caller }) } };
  const inferred = unscoped && action.scope === undefined ? inferScope(facts, unscoped) : undefined;
  const concrete = inferred && unscoped ? { ...unscoped, scope: inferred.scope } : unscoped;
  const ask = concrete && (await services.seenValues.withFirstTimes(facts, concrete));
  const onFile = ask && (await toolOnFile(services, facts.agent.organisationId, loaded.platform, ask));
  const whole = ask && (await withPast(services, facts, withEffect(ask, onFile), now));
  const repeatable =
    read.ok && ask && proposed.withStanding && !git
      ? { who: { sessionId: null }, action: { ...named, scope: ask.scope }, ...read.call, caller: undefined }
      : undefined;
  const decideNow = (asking: Ask) =>
    repeatable
      ? decideCall(facts, repeatable, { ask: asking, onFile, spent: NONE_SPENT }, now).verdict
      : decide(facts, asking, now);
  const decided = whole ? decideNow(whole) : present(stopped, 'verdict');
  const verdict = inferred && decided.kind === 'deny' ? naming(decided, inferred) : decided;
  const held = verdict.kind === 'deny' || !onFile ? undefined : (whyQuarantined(onFile) ?? whyAbsent(onFile, false));
  return {
    kind: 'decided',
    verdict: held === undefined ? verdict : unlikeAccepted(verdict, held),
    policy: policy
      ? { id: inForce?.id ?? null, name: policy.name, version: proposed.policy ? null : policy.version }
      : null,
    guardrails: { version: proposed.guardrails ? null : guardrails.version },
    read: read.ok && ask ? { call: read.call, ask, onFile } : undefined,
    loaded,
    isUnreviewed: rows.some(({ restored }) => restored !== null),
  };
}
