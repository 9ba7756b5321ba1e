/** `npm run bench -- soak`: agents call steadily for people whose tokens live for seconds; no call may fail. */

import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { present } from '../broker/runtime/present.ts';
import { wholeNumber } from './bench-options.ts';
import type { BrokerTarget } from './broker-target.ts';
import { cleanupStack, keeper } from './cleanup.ts';
import { createHistogram } from './histogram.ts';
import type { PeopleCounts } from './people-upstream.ts';
import { startPostgres } from './postgres.ts';
import { forkChild, residentBytes } from './process.ts';
import { PEOPLE_PLATFORM_ID, PEOPLE_SCOPE } from './requests.ts';
import type { StartBroker, Store } from './stage.ts';
import { createTokenBatch } from './tokens.ts';

export const SOAK_USAGE = `Usage: npm run bench -- soak [--minutes N] [--people N] [--every MS] [--store sqlite|postgres]

  --minutes N      how long (10)
  --people N       for so many people agents call (20)
  --every MS       how often for each of them, in milliseconds (500)
  --store STORE    sqlite or postgres (sqlite)
`;

export type SoakOptions = { minutes: number; people: number; everyMs: number; store: Store };

/** Parses the command line. Throws an Error with a message for the user. */
export function readSoakOptions(args: readonly string[]): SoakOptions {
  const text = { type: 'string' } as const;
  const options = { minutes: text, people: text, every: text, store: text };
  const { values } = parseArgs({ args: [...args], options });
  const { store = 'sqlite' } = values;
  if (store !== 'sqlite' && store !== 'postgres')
    throw new Error(`--store: ${store} is not a store; take sqlite or postgres.`);
  return {
    minutes: wholeNumber('--minutes', values.minutes, 10, 24 * 60),
    people: wholeNumber('--people', values.people, 20, 1_000),
    everyMs: wholeNumber('--every', values.every, 500, 60_000),
    store,
  };
}

const TOKEN_SECONDS = 5;
const AGENTS = 3;
const MAX_SAMPLES = 5;

/** Runs the bench and prints the results. Returns the exit code: 1 when a call failed, or was sent with another person's token. */
export async function soak({ minutes, people, everyMs, store }: SoakOptions, start: StartBroker): Promise<number> {
  await using stack = cleanupStack();
  const keep = keeper(stack);
  const platform = keep(await forkChild('people-upstream.ts', { BENCH_TOKEN_SECONDS: String(TOKEN_SECONDS) }));
  const peopleUrl = `http://127.0.0.1:${(platform.said as { port: number }).port}`;
  const database = store === 'postgres' ? keep(present(await startPostgres(), 'PostgreSQL')) : undefined;
  const on = database
    ? ({ store: 'postgres', databaseUrl: await database.createDatabase('soak') } as const)
    : ({ store: 'sqlite' } as const);
  const broker = keep(present(await start({ ...on, agents: AGENTS, upstreamUrl: peopleUrl, peopleUrl }), 'broker'));
  const tokens = createTokenBatch(broker.agents, AGENTS, Date.now);
  const names = Array.from({ length: people }, (_, at) => `person-${at}`);
  for (const [at, name] of names.entries()) await consent(broker, present(tokens.fresh()[at % AGENTS], 'token'), name);

  const latency = createHistogram();
  const failed = new Map<string, number>();
  const samples: string[] = [];
  const before = residentBytes([broker.pid]);
  const end = performance.now() + minutes * 60_000;
  let calls = 0;
  const person = async (name: string, at: number): Promise<void> => {
    await wait((everyMs * at) / people);
    for (let turn = at; performance.now() < end; turn++) {
      const begun = performance.now();
      const { status, text } = await act(broker, present(tokens.fresh()[turn % AGENTS], 'token'), name).catch(
        (error: Error) => ({ status: 0, text: error.message }),
      );
      calls++;
      latency.record(performance.now() - begun);
      if (status !== 200 || !text.includes(`"who":"${name}"`)) {
        failed.set(String(status), (failed.get(String(status)) ?? 0) + 1);
        if (samples.length < MAX_SAMPLES) samples.push(`${name}: ${status} ${text.slice(0, 300)}`);
      }
      await wait(Math.max(0, everyMs - (performance.now() - begun)));
    }
  };
  await Promise.all(names.map(person));

  const counts = (await (await fetch(`${peopleUrl}/counts`)).json()) as PeopleCounts;
  const audited = await broker.auditCount();
  const { p50, p99, max } = latency.read();
  const megabytes = (bytes: number) => Math.round(bytes / 1024 / 1024);
  process.stdout.write(
    [
      `${minutes} minutes on ${store}: ${people} people, tokens of ${TOKEN_SECONDS} s, ${AGENTS} agents`,
      `calls                 ${calls}, of which ${[...failed.values()].reduce((sum, one) => sum + one, 0)} failed ${JSON.stringify(Object.fromEntries(failed))}`,
      `at the platform       ${counts.served} with the own token of the person, ${counts.wrong} with another's, ${counts.refused} refused`,
      `refreshes             ${counts.refreshed}, of which ${counts.badGrants} with a token that is not good any more`,
      `latency               p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, longest ${max.toFixed(0)} ms`,
      `memory of the broker  ${megabytes(before)} MiB at first, ${megabytes(residentBytes([broker.pid]))} MiB at the end`,
      `rows in the audit     ${audited}`,
      ...samples,
      '',
    ].join('\n'),
  );
  return failed.size > 0 || counts.wrong + counts.badGrants > 0 ? 1 : 0;
}

async function act({ baseUrl }: BrokerTarget, token: string, name: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${baseUrl}/v1/actions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      platform: PEOPLE_PLATFORM_ID,
      endpoint: `/items?of=${name}`,
      method: 'GET',
      scope: PEOPLE_SCOPE,
      caller: { source: 'bench', id: name },
    }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** Does the steps of a person in a browser: opens the link, signs in at the platform, and confirms the account. */
async function consent(broker: BrokerTarget, token: string, name: string): Promise<void> {
  const asked = await act(broker, token, name);
  const link: string = JSON.parse(asked.text).consent_url;
  if (asked.status !== 412 || !link) throw new Error(`A person was to consent, and the call was ${asked.text}`);
  const { origin } = new URL(link);
  const page = { accept: 'text/html', origin };
  const led = await fetch(`${link}/start`, { method: 'POST', headers: page });
  const cookie = led.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ');
  const [, onward = ''] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(await led.text()) ?? [];
  const platform = new URL(onward.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code))));
  platform.searchParams.set('person', name);
  const back = (await fetch(platform, { redirect: 'manual' })).headers.get('location') ?? '';
  await fetch(back, { headers: { ...page, cookie } });
  const kept = await fetch(`${link}/keep`, { method: 'POST', headers: { ...page, cookie } });
  if (kept.status !== 200) throw new Error(`A consent was answered with ${kept.status}: ${await kept.text()}`);
}
