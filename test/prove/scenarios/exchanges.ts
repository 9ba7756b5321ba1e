/**
 * Tokens of App installations, clients and service accounts with lifetimes of seconds, so that calls request new ones all the time: on PostgreSQL
 * for two replicas, of which one or both are killed during a token exchange.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { decodeJwt } from 'jose';
import { ACCOUNT, CLIENT_ID, CLIENT_SECRET, startTokenPlatform } from '../../token-source/token-platform.ts';
import { TestAgent } from '../../world/agent.ts';
import type { BrokerProcess } from '../../world/broker-process.ts';
import { APP_ID, INSTALLATION, startAppPlatform } from '../../world/servers/app-platform.ts';
import { ALLOW_ALL } from '../../world/world.ts';
import type { Invariants } from '../invariants.ts';
import { kill, serving } from '../kill-broker.ts';
import { pause, type Scene, withLog, workers } from '../scene.ts';
import { twoPlaces } from './replicas.ts';

const REPOSITORIES = ['one', 'two', 'three'];
const CONNECTIONS = ['one', 'two'];
/** A token is replaced after three quarters of its lifetime, or five minutes before its end if that is later. */
const LIFE_MS = 6_000;
const USED_MS = 4_500;
const MARGIN_MS = 5 * 60_000;
/** Rounding of an App token's expiry, which has whole seconds. */
const ROUNDED_MS = 1_000;
/** Maximum duration of an exchange, half of which precedes the server's work. */
const EXCHANGE_MS = 300;
const MOMENT_MS = USED_MS + 1_000;
const MAX_WORK_MS = 1_500;
const BOTH = 0.25;
/** How long the claim of a dead process blocks others: the lease, plus tolerance because this process has another clock. */
const CLAIM_MS = 3_000 + 100;

/** For one purpose: when the newest exchange was received, and until when at least its token is used. */
type Exchanged = { at: number; usedUntil: number };

/** Kills replicas `cuts` times. The first place has the address of the world's broker, which the invariants query. */
export async function cutExchanges(scene: Scene, invariants: Invariants, cuts: number): Promise<void> {
  const { random, ledger, reader, spawn, store, world } = scene;
  const server = await startIssuer(scene);
  const agent = await agentOf(scene, server.pems);
  await world.running.stop();
  const places = store === 'postgres' ? await twoPlaces(scene) : [{ url: scene.baseUrl, more: {} }];
  const start = async (at: number): Promise<BrokerProcess> => await serving(spawn(places[at]!.more));
  const running = await Promise.all(places.map((_, at) => start(at)));
  const calls = callsOf();
  const work = workers(12, async (worker, turn) => {
    const item = `x${worker}-${turn}`;
    const call = calls[Math.floor(random() * calls.length)]!(item);
    const began = performance.now();
    const there = new TestAgent({ ...agent, baseUrl: places[worker % places.length]!.url });
    const answer = await there.act(call);
    const took = performance.now() - began;
    ledger.most('longest call, ms', took);
    invariants.answered(item, answer);
    // A busy machine may be too slow to record in time.
    if (answer.status === 503) ledger.find(`answers of 503 ${answer.body.error}`);
    else if (answer.status !== 200)
      throw new Error(`${item} is answered ${answer.status} ${answer.text} after ${Math.round(took)} ms`);
    await pause(random() * 20);
    return answer.status === 200;
  });
  for (let cut = 0; cut < cuts; cut++) {
    work.resume();
    if (cut % 4 !== 3) await Promise.race([server.moment(), pause(MOMENT_MS)]);
    else await pause(random() * MAX_WORK_MS);
    await pause(random() * EXCHANGE_MS);
    const one = Math.floor(random() * places.length);
    const killed = random() < BOTH ? [...places.keys()] : [one];
    server.kills.push(performance.now());
    await Promise.all(killed.map((at) => kill(running[at]!)));
    server.kills.push(performance.now());
    ledger.cuts++;
    for (const { claim_until: until } of await reader.rows(
      'select claim_until from upstream_tokens where claim is not null',
    )) {
      const left = Number(until) - Date.now();
      if (left > CLAIM_MS) throw new Error(`calls have to wait ${left} ms for a process that may be dead`);
      ledger.check('calls wait at most 3 s for the exchange of a dead process');
    }
    // The other replica keeps working, with calls that need what the dead one was requesting.
    await pause(random() * MAX_WORK_MS);
    for (const at of killed) running[at] = await start(at);
    // Everything that was interrupted is requested again.
    await pause(random() * MAX_WORK_MS);
    await work.pause();
    try {
      await invariants.check();
      server.check();
    } catch (error) {
      throw withLog(scene, cut + 1, error);
    }
  }
  await invariants.checkAll();
  ledger.find('operations', work.progress());
  for (const child of running) {
    child.signal('SIGTERM');
    await child.ended;
  }
}

/** One call per purpose, as reads and as changes. */
function callsOf(): ((item: string) => Record<string, unknown>)[] {
  const change = { data: { message: 'm', content: 'YQ==' } };
  return [
    ...REPOSITORIES.flatMap((repository) => {
      const at = { platform: 'codehost', path: `/repos/acme/${repository}/contents/items` };
      return [
        (item: string) => ({
          platform: at.platform,
          endpoint: `${at.path}/${item}`,
          method: 'GET',
          scope: 'codehost:contents.read',
        }),
        (item: string) => ({
          platform: at.platform,
          endpoint: `${at.path}/${item}`,
          method: 'PUT',
          scope: 'codehost:contents.write',
          ...change,
        }),
      ];
    }),
    ...['client', 'account'].flatMap((kind) =>
      CONNECTIONS.flatMap((name) => {
        const platform = `${kind}-${name}`;
        return [
          (item: string) => ({ platform, endpoint: `/items/${item}`, method: 'GET', scope: `${platform}:read` }),
          (item: string) => ({
            platform,
            endpoint: `/items/${item}`,
            method: 'PATCH',
            scope: `${platform}:write`,
            ...change,
          }),
        ];
      }),
    ),
  ];
}

/** Connects all platforms by a governance file, as an owner does. */
async function agentOf({ world, organisation }: Scene, pems: { app: string; account: string }): Promise<TestAgent> {
  const { url } = world.upstream;
  const platforms: Record<string, object> = {
    codehost: {
      use: 'github',
      base_url: url,
      auth: { type: 'app', app_id: APP_ID, installation_id: INSTALLATION, private_key: { env: 'APP' } },
    },
  };
  const connections: Record<string, object> = { 'codehost-main': { platform: 'codehost' } };
  const values: Record<string, string> = {
    'env:APP': pems.app,
    'env:CLIENT': JSON.stringify({ client_id: CLIENT_ID, client_secret: CLIENT_SECRET }),
    'env:ACCOUNT': JSON.stringify({ type: 'service_account', private_key: pems.account, client_email: ACCOUNT }),
  };
  const grants: Record<string, object> = {
    codehost: {
      scopeList: ['codehost:contents.read', 'codehost:contents.write'],
      constraints: JSON.stringify({ repos: REPOSITORIES.map((name) => `acme/${name}`) }),
    },
  };
  for (const name of CONNECTIONS)
    for (const [kind, type] of [
      ['client', 'client_credentials'],
      ['account', 'service_account'],
    ]) {
      const platform = `${kind}-${name}`;
      platforms[platform] = {
        kind: 'rest',
        base_url: url,
        // The scope tells the server whose token it is.
        auth: { type, token_endpoint: `${url}/token`, scopes: [platform] },
        scopes: { [`${platform}:read`]: ['GET /items/*'], [`${platform}:write`]: ['PATCH /items/*'] },
      };
      connections[`${platform}-main`] = { platform, secret: { env: kind!.toUpperCase() } };
      grants[platform] = { scopeList: [`${platform}:read`, `${platform}:write`] };
    }
  const applied = await organisation.ask('POST', '/owner/governance/apply', {
    text: JSON.stringify({ platforms, connections }),
    values,
  });
  if (applied.status !== 200) throw new Error(applied.text);
  return await organisation.agent({ rules: ALLOW_ALL, grants: grants as never });
}

/** Starts the world's platform in front of the token endpoints of both strict platforms, with delays. */
async function startIssuer({ world, random, ledger }: Scene) {
  const app = await startAppPlatform();
  const tokens = await startTokenPlatform();
  const there = { app: app.url, tokens: tokens.url };
  // The audience of assertions is the URL that they are sent to.
  tokens.url = world.upstream.url;
  tokens.expiresIn = LIFE_MS / 1000;
  app.lifeMs = MARGIN_MS + USED_MS;
  app.installations.get(INSTALLATION)!.repositories = REPOSITORIES.map((name) => `acme/${name}`);

  const kills: number[] = [];
  const newest = new Map<string, Exchanged>();
  /** By token: when the broker must not use it any more. */
  const ends = new Map<string, number>();
  const wrong: string[] = [];
  let isAsked = () => {};

  const purposeOf = (path: string, body: string): string => {
    if (path !== '/token') return body;
    const form = new URLSearchParams(body);
    return `${form.get('scope') ?? decodeJwt(form.get('assertion') ?? '').scope}`;
  };

  const exchange = async (request: IncomingMessage, response: ServerResponse, body: string): Promise<void> => {
    const path = request.url ?? '';
    const purpose = purposeOf(path, body);
    const at = performance.now();
    const before = newest.get(purpose);
    // Allowed if the previous token has expired, or its answer may have been lost with a killed process.
    const isEarly = before !== undefined && before.usedUntil > at;
    const isLost = kills.some((moment) => before !== undefined && moment >= before.at && moment <= at);
    if (isEarly && !isLost)
      wrong.push(`an exchange for ${purpose} ${Math.round(at - before.at)} ms after the one before, and nobody died`);
    else ledger.check('no exchange while a token is valid, unless a process died during one');
    if (isEarly) ledger.find('exchanges repeated after a kill');
    const now: Exchanged = { at, usedUntil: Number.POSITIVE_INFINITY };
    newest.set(purpose, now);
    response.on('close', () => {
      if (!response.writableFinished) ledger.find('interrupted exchanges');
    });
    ledger.find('exchanges');
    isAsked();
    await pause((random() * EXCHANGE_MS) / 2);
    const headers = Object.fromEntries(
      ['authorization', 'content-type'].flatMap((name) => {
        const value = request.headers[name];
        return typeof value === 'string' ? [[name, value]] : [];
      }),
    );
    const issued = performance.now();
    const answer = await fetch((path === '/token' ? there.tokens : there.app) + path, {
      method: 'POST',
      headers,
      body,
    });
    const text = await answer.text();
    if (!answer.ok) wrong.push(`an exchange for ${purpose} is answered ${answer.status} ${text}`);
    const { token, access_token: other } = JSON.parse(text);
    await pause((random() * EXCHANGE_MS) / 2);
    now.usedUntil = issued + USED_MS - (path === '/token' ? 0 : ROUNDED_MS);
    // Without the last five minutes of an App token's lifetime, in which it is not used, and with the same time in flight as a client's token.
    ends.set(token ?? other, performance.now() + LIFE_MS);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  };

  world.upstream.answer = (request, response, body) => {
    const path = request.url ?? '';
    if (path === '/token' || path.endsWith('/access_tokens')) return void exchange(request, response, body);
    const end = ends.get(/^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '');
    if (end === undefined || end < performance.now())
      wrong.push(`${request.method} ${path} ${end === undefined ? 'without a token' : 'with a token that is over'}`);
    else ledger.check('a call uses an unexpired token');
    setTimeout(() => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ bytes: body.length }));
    }, random() * 20);
  };

  return {
    pems: { app: app.pem, account: tokens.pem },
    /** Times just before and just after each kill. */
    kills,
    /** Resolves at the next exchange. */
    moment: () => new Promise<void>((resolve) => (isAsked = resolve)),
    /** Throws the violations found. */
    check: () => {
      if (wrong.length > 0) throw new Error(`${wrong.length} did not hold: ${wrong.slice(0, 3).join('; ')}`);
    },
  };
}
