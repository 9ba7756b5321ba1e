/** Decides items of the inbox: shows each, asks, sends the decision with the hash of what was shown, and prints the result in one line each. */
import { setTimeout as pause } from 'node:timers/promises';
import { itemOutcome } from '../../broker/console/static/inbox/entry-text.js';
import { platformAnswer } from '../../broker/console/static/request-view/answer.js';
import { commandWith } from '../command-with.ts';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed, OutcomeUnknown, RefusedByBroker, WrongUsage } from '../failure.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { printJson, printLines, terminalWidth } from '../terminal/output.ts';
import { askLine, canAsk, confirm } from '../terminal/prompt.ts';
import { approvalRequest, denialRequest, PATHS, type Terms } from './decision-request.ts';
import { formatItem, readWaitingItem, type WaitingItem } from './show.ts';
import { describeStanding } from './standing-request.ts';
import { findWaiting, pickWaiting, requesterOf, titleOf, type Waiting } from './waiting.ts';

export type DecideOptions = ConnectionOptions & { json?: boolean; yes?: boolean };
/** `wait`: how many seconds to wait for the platform's answer; null: do not wait. */
type Decision = { verb: 'approve'; terms: Terms; wait: number | null } | { verb: 'deny'; reason: string | undefined };
/** `ok`: decided, and if the call was waited for, made. */
type Result = { id: string; kind: Waiting['kind']; ok: boolean; words: string; answer?: unknown };

/** Poll interval for the platform's answer. */
const POLL_MS = 300;

/** Decides one item after the other, and sets the exit code to 1 when one of them was not decided, or its call not made. */
export async function decideAll(ids: readonly string[], decision: Decision, options: DecideOptions): Promise<void> {
  if (!options.yes && (options.json || !canAsk()))
    throw new WrongUsage(
      `To ${decision.verb} ${options.json ? 'with --json' : 'without a terminal to ask at'}, add --yes. Look first: ${commandWith(options, 'inbox show ID')}`,
    );
  const api = await openOwnerApi(options);
  const me = await api.ask('GET', '/owner/me');
  const waiting = await findWaiting(api, me);
  // A wrong id suggests that the person meant something else: then nothing is decided.
  const chosen = [...new Set(ids.map((id) => pickWaiting(api, waiting, id)))];
  const results: Result[] = [];
  for (const one of chosen) {
    const result = await decideOne(api, one, decision, { ...options, baseUrl: me.base_url });
    results.push(result);
    if (!options.json) printLines([lineOf(one, result)]);
  }
  if (options.json) printJson(results);
  if (results.some(({ ok }) => !ok)) process.exitCode = 1;
}

const lineOf = (one: Waiting, { ok, words }: Result): Line =>
  line`${styled('bold', one.short)}  ${requesterOf(one)}: ${titleOf(one)}. ${styled(ok ? 'good' : 'bad', words)}`;

async function decideOne(
  api: OwnerApi,
  one: Waiting,
  decision: Decision,
  { yes, baseUrl }: DecideOptions & { baseUrl: string },
): Promise<Result> {
  const { id, kind } = one;
  const failed = (words: string): Result => ({ id, kind, ok: false, words });
  try {
    const entry = await readWaitingItem(api, one);
    if (entry.kind === 'person') throw new CommandFailed(`It is decided in the console: ${baseUrl}/console/people`);
    if (!yes) printLines([...formatItem(entry, terminalWidth(), baseUrl), line``]);
    const body =
      decision.verb === 'approve'
        ? approvalRequest(entry, decision.terms, baseUrl)
        : denialRequest(entry, yes ? decision.reason : await reasonFor(entry, decision.reason), baseUrl);
    if (!yes && entry.kind === 'approval' && 'standing' in body && body.standing)
      printLines([
        line`${styled('bold', describeStanding(body.standing, entry.item.standing?.longest_session_seconds ?? 0))}`,
      ]);
    if (!yes && !(await confirm(decision.verb === 'approve' ? 'Approve exactly this?' : 'Deny it?')))
      return failed('Nothing was decided.');
    return await sent(api, entry, body, decision);
  } catch (error) {
    if (error instanceof CommandFailed) return failed(whyNot(api, one, error));
    throw error;
  }
}

/** Returns the given reason, or asks for one; registrations of agents take no reason. */
async function reasonFor({ kind }: WaitingItem, given: string | undefined): Promise<string | undefined> {
  if (given !== undefined || kind === 'registration') return given;
  return (await askLine('Reason, for the agent to read (may be empty): ')) || undefined;
}

type Decidable = Exclude<WaitingItem, { kind: 'person' }>;

async function sent(api: OwnerApi, entry: Decidable, body: object, decision: Decision): Promise<Result> {
  const { id, kind } = entry;
  const verb = decision.verb === 'deny' && kind === 'registration' ? 'reject' : decision.verb;
  const post = (signal?: AbortSignal) =>
    api.ask('POST', `${PATHS[kind]}/${id}/${verb}` as never, body as never, signal);
  if (decision.verb === 'deny' || kind !== 'approval') {
    const answer = await post();
    return { id, kind, ok: true, words: itemOutcome(kind, answer).words, answer };
  }
  const answer = decision.wait === null ? await decidedOnly(api, id, post) : await made(api, id, post, decision.wait);
  return { id, kind, ...outcomeOf(api, answer, decision.wait), answer };
}

type Held = Extract<WaitingItem, { kind: 'approval' }>['item'];

/** The result is ok when the platform performed the call; without waiting, when the call was approved. */
function outcomeOf({ command }: OwnerApi, held: Held, wait: number | null): Pick<Result, 'ok' | 'words'> {
  const { words, waits } = itemOutcome('approval', held);
  if (waits) return { ok: true, words };
  if (wait === null) return { ok: held.status === 'approved', words };
  if (held.executed_at === null && held.execution_error === null)
    return {
      ok: false,
      words: `${words} The call did not finish within ${wait} s: see its result in ${command('activity')}.`,
    };
  const refused = held.result_summary !== null && platformAnswer(held.result_summary).kind !== 'good';
  return { ok: held.execution_error === null && !refused, words };
}

/** Approves without waiting for the call, which continues after the request is aborted: aborts it as soon as the decision is stored. */
async function decidedOnly(api: OwnerApi, id: string, post: (signal: AbortSignal) => Promise<unknown>): Promise<Held> {
  const leaving = new AbortController();
  let failure: unknown;
  let answered = false;
  const posted = post(leaving.signal).then(
    () => {
      answered = true;
    },
    (error: unknown) => {
      failure = error;
      answered = true;
    },
  );
  for (;;) {
    await Promise.race([posted, pause(POLL_MS)]);
    if (failure !== undefined) throw failure;
    const held = await api.ask('GET', `/owner/approvals/${id}`);
    if (answered || held.status !== 'pending') {
      leaving.abort();
      return held;
    }
  }
}

async function made(api: OwnerApi, id: string, post: () => Promise<unknown>, wait: number): Promise<Held> {
  const until = performance.now() + wait * 1000;
  await post();
  for (;;) {
    const held = await api.ask('GET', `/owner/approvals/${id}`);
    if (
      held.status === 'pending' ||
      held.executed_at !== null ||
      held.execution_error !== null ||
      performance.now() >= until
    )
      return held;
    await pause(POLL_MS);
  }
}

/** Explains why an item was not decided, and what to do now. */
function whyNot(api: OwnerApi, one: Waiting, error: CommandFailed): string {
  if (error instanceof OutcomeUnknown)
    return `${error.message} It may have been decided all the same: look with ${api.command('inbox')}.`;
  if (!(error instanceof RefusedByBroker)) return error.message;
  if (error.code === 'request_changed')
    return 'The item has changed since it was shown. Nothing was decided: show it again.';
  // An approval that this owner may not give here may be possible on its page, with a passkey or for another owner.
  if (error.status === 403 && one.kind === 'approval') return `${error.message} Its page: ${one.item.approve_url}`;
  return error.message;
}
