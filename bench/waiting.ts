/** Many agents that wait for decisions at the same time: their cost, and the time until each receives its decision. */

import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { present } from '../broker/runtime/present.ts';
import type { BrokerTarget } from './broker-target.ts';
import { cpuSeconds, residentBytes } from './process.ts';
import { heldWrite } from './requests.ts';
import { createTokenBatch } from './tokens.ts';

export type WaitingFindings = {
  agents: number;
  /** Growth of the resident bytes by the waiting agents. */
  bytes: number;
  /** CPU seconds per second of broker and database while all agents wait and nothing happens; `alone`: with no agent waiting. */
  load: { waiting: number; alone: number };
  /** Statements per second in the same time; NaN on SQLite, which does not count them. */
  statements: { waiting: number; alone: number };
  /** Milliseconds from the owner's decision to the agent's answer, less the time of the platform. */
  decided: number[];
  /** Milliseconds from the agent's 202 until the owner's page has received the request. */
  shown: number[];
};

const QUIET_MS = 5_000;
/** PostgreSQL's idle connections report their statistics up to 10 s late (PGSTAT_IDLE_INTERVAL). */
const SETTLED_MS = 11_000;
const DECISIONS = 50;
const LOOKS = 20;
/** How long an agent's poll stays open, in seconds: the maximum that the specification allows. */
const TIMEOUT_S = 50;
const AT_ONCE = 50;
/** The deadline for an owner's page to show a new request; a longer time is an error of the run. */
const SHOWN_WITHIN_MS = 30_000;

type Answer = { status: number; body: Record<string, unknown>; at: number };

/**
 * Holds a call of each of these agents, which all poll for the decision, each on a connection of its own. Then
 * decides some, one after the other, and measures the owner's inbox while further calls are held.
 *
 * @param pids processes of the broker and its database
 */
export async function watchWaiting(
  broker: BrokerTarget,
  pids: readonly number[],
  tell: (text: string) => void,
): Promise<WaitingFindings> {
  const { baseUrl, agents } = broker;
  const tokens = createTokenBatch(agents, agents.length, Date.now).fresh();
  const owner = `Bearer ${await broker.ownerToken()}`;
  const short = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const long = new Agent({ keepAlive: false });
  const held = async (at: number): Promise<string> => {
    const answer = await ask(baseUrl, short, 'POST', '/v1/actions', `Bearer ${tokens[at]}`, heldWrite(at));
    if (answer.status !== 202) throw new Error(`A call was to be held, and was answered with ${answer.status}.`);
    return String(answer.body.approval_id);
  };
  try {
    // Warm-up, so that the database's workers and the notification channel exist before the first measurement.
    const first = await held(0);
    const early = ask(baseUrl, long, 'GET', `/v1/approvals/${first}?wait=${TIMEOUT_S}`, `Bearer ${tokens[0]}`);
    await wait(500);
    await ask(baseUrl, short, 'POST', `/owner/approvals/${first}/deny`, owner, {});
    await early;

    const ids: string[] = [];
    for (let from = 0; from < agents.length; from += AT_ONCE) {
      const group = agents.slice(from, from + AT_ONCE).map((_, at) => held(from + at));
      ids.push(...(await Promise.all(group)));
    }
    const alone = await quietly(broker, pids);
    const before = residentBytes([broker.pid]);
    tell(`${agents.length} agents begin to wait`);
    const waiting: Promise<Answer>[] = [];
    for (const [at, id] of ids.entries()) {
      const polling = ask(baseUrl, long, 'GET', `/v1/approvals/${id}?wait=${TIMEOUT_S}`, `Bearer ${tokens[at]}`);
      // Most of these polls are aborted at the end.
      polling.catch(() => undefined);
      waiting.push(polling);
      if (at % AT_ONCE === 0) await wait(20);
    }
    const quiet = await quietly(broker, pids);
    const bytes = residentBytes([broker.pid]) - before;

    const platformMs = await platformTime(broker, short);
    const decided: number[] = [];
    for (let at = 0; at < DECISIONS; at++) {
      const startedAt = performance.now();
      const word = ask(baseUrl, short, 'POST', `/owner/approvals/${ids[at]}/approve`, owner, {});
      const answer = await present(waiting[at], 'call that waits');
      decided.push(answer.at - startedAt - platformMs);
      await word;
      if (answer.body.status !== 'approved') throw new Error(`An agent heard ${JSON.stringify(answer.body)}.`);
    }
    const shown = await watchInbox(baseUrl, owner, short, held);
    return {
      agents: agents.length,
      bytes,
      load: { waiting: quiet.load, alone: alone.load },
      statements: { waiting: quiet.statements, alone: alone.statements },
      decided,
      shown,
    };
  } finally {
    short.destroy();
    long.destroy();
  }
}

/** Measures a period without requests: CPU seconds and statements per second. */
async function quietly({ statementCount }: BrokerTarget, pids: readonly number[]) {
  await wait(Number.isNaN(await statementCount()) ? 1_000 : SETTLED_MS);
  const [statements, cpu, startedAt] = [await statementCount(), cpuSeconds(pids), performance.now()];
  await wait(QUIET_MS);
  const seconds = (performance.now() - startedAt) / 1_000;
  return {
    load: (cpuSeconds(pids) - cpu) / seconds,
    statements: ((await statementCount()) - statements) / seconds,
  };
}

/** Returns the platform's fastest own time: the minimum, so that not too much is subtracted. */
async function platformTime({ upstreamUrl }: BrokerTarget, agent: Agent): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const startedAt = performance.now();
    const { at } = await ask(upstreamUrl, agent, 'GET', '/items/1', '');
    times.push(at - startedAt);
  }
  return Math.min(...times);
}

/** Subscribes to events as the owner's page does, and reads the newest requests after each event. */
async function watchInbox(
  baseUrl: string,
  owner: string,
  agent: Agent,
  held: (at: number) => Promise<string>,
): Promise<number[]> {
  const leaving = new AbortController();
  const news = await fetch(`${baseUrl}/owner/events`, { headers: { authorization: owner }, signal: leaving.signal });
  if (!news.ok || !news.body) throw new Error(`The owner's events answered ${news.status}.`);
  const { body } = news;
  let heard = 0;
  let wake = () => {};
  const listening = (async () => {
    for await (const _piece of body) {
      heard++;
      wake();
    }
  })().catch(() => undefined);
  const after = async (count: number): Promise<void> => {
    while (heard <= count)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  };
  const shown: number[] = [];
  for (let at = 0; at < LOOKS; at++) {
    await wait(200);
    let seen = heard;
    const id = await held(at);
    const heldAt = performance.now();
    for (let there = false; !there; ) {
      if (performance.now() - heldAt > SHOWN_WITHIN_MS)
        throw new Error(`A new request was not in the owner's list after ${SHOWN_WITHIN_MS / 1_000} s.`);
      await Promise.race([after(seen), wait(SHOWN_WITHIN_MS)]);
      seen = heard;
      // Without a status the list is newest first. Pending calls are listed oldest first, and thousands are pending already.
      const { body } = await ask(baseUrl, agent, 'GET', '/owner/approvals?limit=10', owner);
      there = (body.approvals as { approval_id: string }[]).some(({ approval_id }) => approval_id === id);
    }
    shown.push(performance.now() - heldAt);
  }
  leaving.abort();
  await listening;
  return shown;
}

function ask(
  baseUrl: string,
  agent: Agent,
  method: string,
  path: string,
  authorization: string,
  body?: object,
): Promise<Answer> {
  const text = body && JSON.stringify(body);
  const headers = {
    ...(authorization && { authorization }),
    ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  };
  return new Promise((resolve, reject) => {
    const asking = httpRequest(`${baseUrl}${path}`, { agent, method, headers }, (answer: IncomingMessage) => {
      let said = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        said += piece;
      });
      answer.on('end', () => {
        const at = performance.now();
        resolve({ status: answer.statusCode ?? 0, body: said === '' ? {} : JSON.parse(said), at });
      });
    });
    asking.on('error', reject);
    asking.end(text);
  });
}
