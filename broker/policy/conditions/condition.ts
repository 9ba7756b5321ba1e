/**
 * `when`: a condition in CEL (Common Expression Language) on a rule. It is compiled once, when its policy version is loaded, and evaluated on concrete calls
 * only. A condition that fails returns the error; the rule then decides against the agent.
 */
import { type CelValue, celEnv, isCelError, parse, plan } from '@bufbuild/cel';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { DEED_KINDS } from '../call-ask.ts';
import { type AgentFacts, type CallAsk, type GitRef, type Instant, type JsonObject, UnreadBody } from '../facts.ts';
import { type GraphqlAsk, graphqlForConditions } from '../graphql/conditions.ts';
import { foldName } from '../names.ts';
import { isGraphql } from '../operation.ts';
import type { PlatformRules } from '../platform-rules.ts';
import { refsForConditions } from '../refs/refs.ts';
import type { ConditionInput, Expression } from './compiled.ts';
import { evaluateEach, type Results } from './evaluation.ts';
import { conditionFunctions, type Literals } from './functions.ts';
import type { ResultType } from './literals.ts';
import { type BodyMembers, bodyMap, queryMaps } from './parameters.ts';
import { isUnknown } from './readings.ts';
import { checkSyntax } from './syntax.ts';
import { type Meter, newMeter, toCelValue } from './values.ts';

const MAX_SOURCE_LENGTH = 2048;
/** May match inside a text literal, which only costs an unneeded look-up. */
const FIRST_TIME = /\bfirst_time\b/;
/** May match inside a text literal; then the result for a recorded call is only reported as unknown. */
const UNRECORDED = /\brequest\b(?!\.(?:method|endpoint)\b)|\b(?:caller|first_time)\b/;

/**
 * Compiles a condition.
 *
 * @returns the condition, or a sentence for its author: syntax, unknown names and functions, a result that is not true or
 *   false, regular expressions and time zones that do not compile, loops nested too deep.
 */
export function compileCondition(source: string): Compiled<boolean> {
  return compile(source, {
    type: 'bool',
    take: (value) => (typeof value === 'boolean' ? value : undefined),
    wrong: 'the result is neither true nor false',
    unknown: [
      { ok: true, value: false },
      { ok: true, value: true },
    ],
  });
}

const WRONG_AMOUNT = 'the amount is not a number from 0 on';

/** Compiles the expression of an amount, in the same way: its result is a number from 0 on. */
export function compileAmount(source: string): Compiled<number> {
  const compiled = compile(source, { type: 'number', take: amountOf, wrong: WRONG_AMOUNT });
  if (!compiled.ok) return compiled;
  // Without variables only an expression that reads none has a result.
  const constant = compiled.condition.evaluate({ meter: newMeter(), variables: Object.create(null) });
  return !constant.ok && constant.error === WRONG_AMOUNT ? constant : compiled;
}

function amountOf(value: unknown): number | undefined {
  const number = typeof value === 'bigint' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined;
}

type Compiled<Value> = { ok: true; condition: Expression<Value> } | { ok: false; error: string };

type Kind<Value> = {
  type: ResultType;
  /** Returns the value of a result; undefined for a result of the wrong type, for which `wrong` is the error. */
  take: (value: unknown) => Value | undefined;
  wrong: string;
  /** All possible values of an unknown result; undefined: an unknown result is an error. */
  unknown?: Results<Value>;
};

function compile<Value>(source: string, { type, take, wrong, unknown }: Kind<Value>): Compiled<Value> {
  if (source.length > MAX_SOURCE_LENGTH)
    return { ok: false, error: `a condition has at most ${MAX_SOURCE_LENGTH} characters` };
  const literals: Literals = { regexes: new Map(), zones: new Map(), texts: new Set() };
  const running: { meter: Meter } = { meter: newMeter() };
  try {
    const env = celEnv({ funcs: conditionFunctions(literals, () => running.meter) });
    const { expr } = parse(source);
    const readsWithoutHas = checkSyntax(expr, env.funcs, literals, type);
    const run = plan(env, expr);
    const evaluateOnce = ({ variables }: ConditionInput): Results<Value> => {
      const result = withoutStackTraces(() => run(variables));
      if (isCelError(result)) {
        if (unknown !== undefined && isUnknown(result)) return unknown;
        return [{ ok: false, error: describe(result.message, source) }];
      }
      const value = take(result);
      return [value === undefined ? { ok: false, error: wrong } : { ok: true, value }];
    };
    const named = Map.groupBy(literals.texts, foldName);
    const evaluate: Expression<Value>['evaluate'] = (input) => {
      running.meter = input.meter;
      input.meter.named = named;
      return evaluateEach(input.meter, source.length, () => evaluateOnce(input));
    };
    const readsFirstTimes = FIRST_TIME.test(source);
    const readsUnrecorded = UNRECORDED.test(source);
    return { ok: true, condition: { source, readsWithoutHas, readsFirstTimes, readsUnrecorded, evaluate } };
  } catch (error) {
    if (error instanceof RangeError) return { ok: false, error: 'the condition is nested too deeply' };
    return { ok: false, error: error instanceof Error ? error.message.replace(/^<input>:/, 'at ') : 'not a condition' };
  }
}

/** Runs without stack traces: a loop may meet an error in each of its iterations, and capturing a trace costs more than everything that the meter counts. */
function withoutStackTraces<T>(work: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The facts about the agent that conditions can read. */
export type ConditionAgent = Pick<
  AgentFacts,
  'id' | 'agentId' | 'name' | 'ownerId' | 'organisationId' | 'labels' | 'parent'
>;

const NONE: readonly string[] = Object.freeze([]);

/** Stands for a body that is not read: any condition that mentions it fails, and decides against the agent. */
const OF_GIT = new UnreadBody('the body of a git request is not read');

const NOT_LOOKED_UP = Object.freeze(
  Object.fromEntries(DEED_KINDS.map((kind) => [kind, new Error('what the agent did before was not looked up')])),
);

/**
 * Returns the variables of a call: `request` (method, endpoint without the query, query, query_all, body, headers), `agent`, `platform`, `scope` and `now`.
 * `request.query` has texts; a name given more than once is an error when it is read, since two readers may pick different ones. `request.query_all` has a
 * list of texts for every name. Header names are lower case. `request.git` (service, refs with name and action, push_options) exists on git requests only,
 * and `caller.verified` where the platform holds one token per person and supports the caller. `request.refs` has the refs that the call writes, with name
 * and action, as declared in the platform's manifest; an error when they cannot be determined. `request.graphql` (operation, fields with name and arguments)
 * exists on GraphQL calls only. `first_time` (operation, recipient, repository): whether the agent does that for the first time.
 *
 * @param rules of the platform; without them no body counts as a form, and only git requests write refs
 */
export function conditionInput(
  agent: ConditionAgent,
  ask: { platformId: string; scope: string; call: CallAsk },
  now: Instant,
  rules?: PlatformRules,
): ConditionInput {
  const { call } = ask;
  const hasForm = call.isForm ?? rules?.isForm ?? false;
  const meter = newMeter(hasForm);
  const { git } = call;
  const body = git && call.method !== 'GET' ? OF_GIT : (call.body ?? {});
  let maps: ReturnType<typeof queryMaps> | undefined;
  let members: CelValue | undefined;
  let headers: CelValue | undefined;
  let refs: CelValue | undefined;
  let graphql: GraphqlAsk | undefined;
  const document = rules !== undefined && !(body instanceof UnreadBody) && isGraphql(rules, call) ? body : undefined;
  const readDocument = () => (graphql ??= graphqlForConditions(document));
  const queried = () => (maps ??= queryMaps(call.query, meter));
  const request = {
    method: call.method,
    endpoint: call.path,
    body:
      body instanceof UnreadBody
        ? new Error(body.why)
        : () =>
            (members ??= bodyMap(
              document ? withVariables(document, readDocument) : body,
              call.method === 'GET' ? '' : call.query,
              meter,
            )),
    query: () => queried().query,
    query_all: () => queried().query_all,
    headers: () => (headers ??= toCelValue(lowerCase(call.headers), meter)),
    refs: () => (refs ??= toCelValue(listedRefs(rules, call), meter)),
    ...(document && { graphql: () => readDocument().graphql }),
    ...(git && { git: { service: git.service, refs: git.refs, push_options: git.pushOptions ?? NONE } }),
  };
  const who = {
    id: agent.id,
    agent_id: agent.agentId,
    name: agent.name,
    owner_id: agent.ownerId,
    organisation_id: agent.organisationId,
    parent_agent_id: agent.parent?.agentId ?? null,
    labels: agent.labels ?? NONE,
  };
  return {
    meter,
    variables: {
      __proto__: null as never,
      request: toCelValue(request, meter),
      agent: toCelValue(who, meter),
      caller: toCelValue({ ...call.caller }, meter),
      first_time: toCelValue(call.firstTimes ?? NOT_LOOKED_UP, meter),
      platform: ask.platformId,
      scope: ask.scope,
      now: timestampFromMs(now) as never,
    },
  };
}

/** Replaces `variables` of the body by an error, unless their names match the arguments of the document. */
function withVariables(document: JsonObject, read: () => GraphqlAsk): BodyMembers {
  const { variables } = read();
  return variables === undefined ? document : { ...document, variables };
}

function listedRefs(rules: PlatformRules | undefined, call: CallAsk): readonly GitRef[] | Error {
  const refs = refsForConditions(rules, call);
  return typeof refs === 'string' ? new Error(`the refs that the call writes are unknown: ${refs}`) : refs;
}

function lowerCase(headers: CallAsk['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

const VALUE_FREE =
  /^(?:found no matching overload|type mismatch|unresolved attribute|(?:u?int|double) |the |a string |`contains` )/;

/** Returns the error without values of the call: it is stored in the audit row and the receipt, which never hold any. */
function describe(message: string, source: string): string {
  const [, member] = /^field not found: (.+)$/s.exec(message) ?? [];
  if (member !== undefined) return source.includes(member) ? `there is no \`${member}\`` : 'a member is missing';
  if (/^index .* out of bounds/.test(message)) return 'an index is out of bounds';
  return VALUE_FREE.test(message) ? message : 'a value is not of the form that a function takes';
}
