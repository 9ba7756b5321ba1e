/**
 * Isolation of several organisations on one broker. Everything is derived from ROUTES and the tables: a new route is tested automatically, and a new
 * table has to be filled.
 */
import type { Kysely } from 'kysely';
import { fetch } from 'undici';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import type { Route } from '../../broker/http/route.ts';
import { ROUTES } from '../../broker/http/routes.ts';
import type { Schema } from '../../broker/store/schema.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { TestAgent } from '../world/agent.ts';
import { furnish, organisationTables, type StoredRow, storedRows } from '../world/full-organisation.ts';
import { sized, thorough } from '../world/runner/thorough.ts';
import { sampleBodies } from '../world/sample-bodies.ts';
import { givenWorld, type Organisation } from '../world/world.ts';

const ROLES = ['viewer', 'approver', 'admin'] as const;
/** Owner routes that need no session: ways to get one, and those without organisation data. */
const OPEN = [
  '/owner/local-proof',
  '/owner/sign-in',
  '/owner/sign-in-options',
  '/owner/openapi.json',
  '/owner/passkeys/assert/begin',
  '/owner/passkeys/assert/finish',
];
/** Their answers are the same for everybody. */
const OF_THE_BROKER = /^\/owner\/(keys|reach|installation|channel-kinds|audit-sink-kinds|built-in-platforms(\/.*)?)$/;
/** Devices belong to one owner each, and only some ids of a table are tried: test/notify/web-push.test.ts covers these. */
const OF_ONE_OWNER = /^\/owner\/push-subscriptions\//;
/**
 * Only hashes of one-time tokens and of consents are stored, and tiles are named by position: no row contains a valid value. Their own tests cover
 * these.
 */
const UNNAMED = /\{(token|uid|tile)\}/;
/** How long a stream is read. */
const LISTEN_MS = 300;

const takesOwners = ({ auth }: Route) => auth.includes('owner');
const named = (route: Route) => `${route.method} ${route.path}`;
const OWNED = ROUTES.filter(takesOwners);

test('every owner route declares its authentication and the lowest role', () => {
  expect(OWNED.length).toBeGreaterThan(20);
  expect(OWNED.filter(({ role }) => role === undefined).map(named)).toEqual([]);
  const open = ROUTES.filter(({ path, auth }) => path.startsWith('/owner/') && auth === 'none');
  expect(open.map(({ path }) => path).filter((path) => !OPEN.includes(path))).toEqual([]);
  const others = ROUTES.filter(({ path, auth }) => path.startsWith('/owner/') && auth === 'agent');
  expect(others.map(named)).toEqual([]);
  // A GET only reads and has no body; other methods need a JSON body, which a form or link of another site cannot send.
  for (const route of OWNED.filter(({ method }) => method === 'GET')) expect(route.body, named(route)).toBeUndefined();
});

type Furnished = { organisation: Organisation; rows: StoredRow[] };
type Told = { status: number; text: string; sent: string };

/** Enough to include one of each kind that an owner may reach, in any order of the database. */
const MAX_PER_COLUMN = 5;
/** Ids of other tables than the one that a path names: a route queries its own table, so it finds none of them. A sample from all tables shows it. */
const MAX_OTHER_TABLES = sized(6, Number.POSITIVE_INFINITY);

/** Returns the texts in columns of this name, some of each table. */
function inColumns(rows: readonly StoredRow[], wanted: (column: string, table: string) => boolean): string[] {
  const found = new Map<string, Set<string>>();
  for (const { table, row } of rows)
    for (const [column, value] of Object.entries(row)) {
      if (typeof value !== 'string' || value === '' || !wanted(column, table)) continue;
      const some = found.get(`${table}.${column}`) ?? new Set();
      if (some.size < MAX_PER_COLUMN) found.set(`${table}.${column}`, some.add(value));
    }
  return [...new Set([...found.values()].flatMap((some) => [...some]))];
}

/** Matches names of columns or members that refer to something. */
const REFERS = /(^|_)(id|token|hash)$/;

/** Cached, because the same rows are queried thousands of times. */
const referencesIn = new WeakMap<readonly StoredRow[], Map<string, string[]>>();

/** Returns what a member of this name may refer to, by the names of columns and tables. */
function references(rows: readonly StoredRow[], name: string): string[] {
  const known = referencesIn.get(rows) ?? new Map<string, string[]>();
  referencesIn.set(rows, known);
  const found = known.get(name) ?? findReferences(rows, name);
  known.set(name, found);
  return found;
}

function findReferences(rows: readonly StoredRow[], name: string): string[] {
  if (name === 'id' || name === 'token')
    return inColumns(rows, (column) => column === 'id' || column === 'token' || column === 'agent_id');
  const byColumn = inColumns(rows, (column) => REFERS.test(column) && (column === name || column === `${name}_id`));
  const byTable = inColumns(
    rows,
    (column, table) => (table === `${name}s` && column === 'name') || (table.endsWith(`_${name}s`) && column === 'id'),
  );
  return [...new Set([...byColumn, ...byTable])];
}

/**
 * A value for a parameter; `fits`: whether its table may be the one that the path names before the parameter, as `agents` in `/owner/agents/{id}`.
 */
type Filling = { value: string; fits: boolean };

/** Returns values for a path parameter of this name: those that it may refer to, else any id. Fitting ones come first. */
function fillings(rows: readonly StoredRow[], path: string, name: string): Filling[] {
  const found = references(rows, name);
  const values = found.length > 0 ? found : references(rows, 'id');
  const before = new RegExp(`([\\w-]+)/\\{${name}\\}`).exec(path)?.[1]?.replaceAll('-', '_');
  const inTable = (table: string) => table === before || table.endsWith(`_${before}`);
  const idsOf = ({ row }: StoredRow) => [row.id, row.token, row.agent_id];
  const ofTable = new Set<unknown>(rows.filter(({ table }) => inTable(table)).flatMap(idsOf));
  const fitting = values.filter((value) => ofTable.has(value));
  if (fitting.length === 0 && !UNNAMED.test(`{${name}}`)) return values.map((value) => ({ value, fits: true }));
  const others = values.filter((value) => !ofTable.has(value));
  const step = Math.max(1, Math.floor(others.length / MAX_OTHER_TABLES));
  const some = others.filter((_, at) => at % step === 0);
  return [
    ...fitting.map((value) => ({ value, fits: true })),
    ...some.map((value) => ({ value, fits: fitting.length === 0 })),
  ];
}

/** Returns every combination of these values in the path. */
function paths(path: string, valuesOf: (name: string) => readonly Filling[]): Filling[] {
  const name = /\{(\w+)\}/.exec(path)?.[1];
  if (name === undefined) return [{ value: path, fits: true }];
  return valuesOf(name).flatMap(({ value, fits }) =>
    paths(path.replace(`{${name}}`, encodeURIComponent(value)), valuesOf).map((filled) => ({
      value: filled.value,
      fits: fits && filled.fits,
    })),
  );
}

/** Both stores run the same statements, and these thousands of requests take half the time on SQLite. */
describe('two organisations', () => {
  let alpha: Furnished;
  let agent: TestAgent;
  let beta: Furnished;
  let db: Kysely<Schema>;
  /** Texts that occur in alpha's rows only. */
  let marks: string[];
  const owners = new Map<string, OwnerTable>();

  const look = async (organisation: Organisation): Promise<Furnished> => ({
    organisation,
    rows: await storedRows(db, organisation.id),
  });
  const world = givenWorld('sqlite');
  beforeAll(async () => {
    db = world.db;
    const { organisation, owners: alphas, agent: alphasAgent } = await furnish(world, 'alpha');
    agent = alphasAgent;
    for (const owner of alphas) owners.set(owner.role, owner);
    const other = (await furnish(world, 'beta')).organisation;
    // Rows that the broker writes asynchronously.
    await world.running.services.seenValues.write();
    alpha = await look(organisation);
    beta = await look(other);
    const texts = (rows: readonly StoredRow[]) =>
      new Set(rows.flatMap(({ row }) => Object.values(row)).filter((one): one is string => typeof one === 'string'));
    const betas = texts(beta.rows);
    // Words that may occur in any rows are no marks.
    const telling = (one: string) => one.includes('alpha') || /[0-9a-z]{20}|[0-9a-f]{8}-|@/i.test(one);
    marks = [...texts(alpha.rows)].filter((one) => telling(one) && !betas.has(one));
    expect(marks).toContain('alpha-agent');
  });

  /** Sends a request as this owner, or without one; of a stream only the beginning is read. */
  const ask = async (route: Route, path: string, by: OwnerTable | string, body?: unknown): Promise<Told> => {
    const token = typeof by === 'string' ? by : mintOwnerSession(world.running.broker, by).token;
    const stop = new AbortController();
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const response = await fetch(world.running.baseUrl + path, {
      method: route.method,
      signal: stop.signal,
      headers: {
        authorization: `Bearer ${token}`,
        ...(payload !== undefined && { 'content-type': 'application/json' }),
      },
      ...(payload !== undefined && { body: payload }),
    });
    let text = JSON.stringify([...response.headers]);
    const listening = response.headers.get('content-type')?.startsWith('text/event-stream');
    const timer = listening ? setTimeout(() => stop.abort(), LISTEN_MS) : undefined;
    try {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) text += decoder.decode(chunk as Uint8Array, { stream: true });
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
    clearTimeout(timer);
    return { status: response.status, text, sent: `${decodeURIComponent(path)} ${payload ?? ''}` };
  };

  /** Returns bodies of a route that can be derived from its schema; when none is valid, only its refusal can be tested. */
  const bodiesOf = (route: Route, rows: readonly StoredRow[]): unknown[] => {
    if (!route.body) return [undefined];
    const known = bodiesFor.get(rows) ?? new Map<Route, unknown[]>();
    bodiesFor.set(rows, known);
    const found = known.get(route);
    if (found) return found;
    const bodies = sampleBodies(route.body, (name) => references(rows, name));
    const made = bodies.length > 0 ? bodies : [{}];
    known.set(route, made);
    return made;
  };
  /** Cached, because several tests send the same bodies, and making them takes longer than sending them. */
  const bodiesFor = new WeakMap<readonly StoredRow[], Map<Route, unknown[]>>();
  /**
   * Combines each path with each body. An id of another table is not found whatever the body is, so it is sent with one body only, and with all of
   * them in a thorough run.
   */
  const withBodies = (filled: readonly Filling[], bodies: readonly unknown[]) =>
    filled.flatMap(({ value, fits }) =>
      (fits || thorough ? bodies : bodies.slice(0, 1)).map((body) => ({ path: value, body })),
    );
  /** Returns all requests to a route that can be built from this organisation's values. */
  const requests = (route: Route, rows: readonly StoredRow[]) =>
    withBodies(
      paths(route.path, (name) => fillings(rows, route.path, name)),
      bodiesOf(route, rows),
    );
  /** Returns the requests whose ids are of the table that the path names. */
  const fittingRequests = (route: Route, rows: readonly StoredRow[]) =>
    withBodies(
      paths(route.path, (name) => fillings(rows, route.path, name)).filter(({ fits }) => fits || thorough),
      bodiesOf(route, rows),
    );
  /** Returns requests with one's own values and foreign ones mixed. */
  const mixedRequests = (route: Route, own: readonly StoredRow[], foreign: readonly StoredRow[]) => {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const turns = names.length > 1 ? names : names.length === 1 && route.body ? [''] : [];
    const bodies = bodiesOf(route, foreign);
    return turns.flatMap((turn) => {
      const filled = paths(route.path, (name) => fillings(name === turn ? foreign : own, route.path, name));
      return withBodies(
        filled.filter(({ fits }) => fits || thorough),
        bodies,
      );
    });
  };

  /** Everything that beta's admin sent so far: repeating it in an answer is no leak. */
  let known = '';
  const leaks = ({ text, sent }: Told): string[] =>
    marks.filter((mark) => text.includes(mark) && !sent.includes(mark) && !known.includes(mark));
  const refusedForRole = ({ status, text }: Told) => status === 403 && text.includes('This needs the role');

  test('both organisations have rows in every table that belongs to organisations', async () => {
    for (const { rows } of [alpha, beta]) {
      const furnished = new Set(rows.map(({ table }) => table));
      expect((await organisationTables(db)).filter((table) => !furnished.has(table))).toEqual([]);
    }
  });

  test('AP-16 no GET of an owner writes a row; and control: alpha’s own owner sees alpha’s data on nearly every route', async () => {
    const before = await storedRows(db);
    const telling: string[] = [];
    for (const route of OWNED.filter(({ method }) => method === 'GET'))
      for (const { path, body } of fittingRequests(route, alpha.rows))
        if (leaks(await ask(route, path, alpha.organisation.owner, body)).length > 0) telling.push(named(route));
    expect(await storedRows(db)).toEqual(before);
    const silent = OWNED.filter(
      ({ method, path }) =>
        method === 'GET' && !telling.includes(`GET ${path}`) && ![OF_THE_BROKER, UNNAMED].some((one) => one.test(path)),
    ).map(named);
    // Counts, a demo without a sandbox, and a file whose names are alpha's own text contain no marks.
    expect(silent.length, `silent: ${silent.join(', ')}`).toBeLessThan(7);
  });

  let asItWas: readonly StoredRow[] | undefined;
  /** Compares alpha's rows with the last comparison. So a late write of the broker itself, on a busy machine, fails one test and not all. */
  const expectUnchanged = async () => {
    const texts = (rows: readonly StoredRow[]) => rows.map((row) => JSON.stringify(row));
    const before = new Set(texts(asItWas ?? alpha.rows));
    asItWas = await storedRows(db, alpha.organisation.id);
    const now = new Set(texts(asItWas));
    expect({
      gone: [...before].filter((row) => !now.has(row)),
      new: [...now].filter((row) => !before.has(row)),
    }).toEqual({ gone: [], new: [] });
  };

  // Reads come first, while answers cannot contain anything that beta sent itself.
  const readFirst = OWNED.toSorted((a, b) => Number(a.method !== 'GET') - Number(b.method !== 'GET'));
  /** All rows are compared once after the routes that read, and then after so many that write, and after the last. */
  const WRITES_COMPARED = sized(8, 1);
  const reads = readFirst.filter(({ method }) => method === 'GET').length;
  const isCompared = (at: number) =>
    at === reads - 1 || at === readFirst.length - 1 || (at >= reads && (at - reads + 1) % WRITES_COMPARED === 0);
  test.each(readFirst.map((route, at) => [named(route), route, at] as const))(
    '%s: an admin of another organisation sees nothing of alpha, and changes nothing there',
    async (_name, route, at) => {
      const beta0 = beta.organisation.owner;
      const statuses = new Set<number>();
      for (const { path, body } of requests(route, alpha.rows)) {
        const told = await ask(route, path, beta0, body);
        expect(leaks(told), `${told.sent} → ${told.status} ${told.text}`).toEqual([]);
        // For alpha's own values the answer does not even reveal that they exist.
        if (path !== route.path) expect([400, 404], `${told.sent} → ${told.text}`).toContain(told.status);
        statuses.add(told.status);
        if (route.method !== 'GET') known += told.sent;
      }
      // Not only because of the form: some of these bodies are valid.
      if (route.path.includes('{')) expect([...statuses]).toContain(404);
      for (const { path, body } of mixedRequests(route, beta.rows, alpha.rows)) {
        const told = await ask(route, path, beta0, body);
        expect(leaks(told), `${told.sent} → ${told.status} ${told.text}`).toEqual([]);
        if (route.method !== 'GET') known += told.sent;
      }
      if (thorough || isCompared(at)) await expectUnchanged();
    },
    60_000,
  );

  test('after all these requests an admin of another organisation still sees nothing', async () => {
    const now = (await look(beta.organisation)).rows;
    for (const route of OWNED.filter(({ method }) => method === 'GET'))
      for (const { path } of fittingRequests(route, now)) {
        const told = await ask(route, path, beta.organisation.owner);
        expect(leaks(told), `${told.sent} → ${told.status}`).toEqual([]);
      }
  });

  test.each(OWNED.map((route) => [named(route), route] as const))(
    '%s: refused without a session, and for lower roles',
    async (_name, route) => {
      const [first] = requests(route, alpha.rows);
      for (const token of ['x', 'a.b.c']) expect((await ask(route, first!.path, token, first!.body)).status).toBe(401);
      // The role is checked before the request.
      for (const role of ROLES.slice(0, ROLES.indexOf(route.role!)))
        for (const { path, body } of requests(route, alpha.rows).slice(0, 2)) {
          const told = await ask(route, path, owners.get(role)!, body);
          expect(refusedForRole(told), `${role}: ${told.sent} → ${told.text}`).toBe(true);
        }
    },
  );

  test('none of the refused requests changed anything', () => expectUnchanged());

  test('AP-25 an agent’s token is refused on all routes for owners: sessions, links, decisions', async () => {
    const agents = ['none', 'agent', 'agent_or_owner', 'anyone', 'git', 'raw', 'mcp_client'];
    const closed = ROUTES.filter(({ auth }) => !agents.includes(auth));
    for (const route of closed)
      for (const { path, body } of requests(route, alpha.rows).slice(0, 2)) {
        const told = await ask(route, path, agent.token(), body);
        expect(told.status, `${told.sent} → ${told.text}`).toBe(401);
      }
    expect(closed.length).toBeGreaterThan(60);
  });

  test('the lowest role of each route is sufficient, and one’s own data is found', async () => {
    const missed: string[] = [];
    // Deletions come last, so that the other routes still find data.
    const order = { GET: 0, PUT: 1, POST: 2, PATCH: 2, DELETE: 3 };
    const turn = ({ method, path }: Route) => (path.endsWith('/delete') ? 4 : order[method]);
    let { rows } = await look(alpha.organisation);
    for (const route of OWNED.toSorted((a, b) => turn(a) - turn(b))) {
      const statuses = new Set<number>();
      let made = 0;
      for (const { path, body } of fittingRequests(route, rows)) {
        // Ten requests that are not refused for the role are enough, once one of them was carried out or at least found its object.
        if (++made > 10 && [...statuses].some((status) => status < 300 || (!thorough && status === 409))) break;
        const told = await ask(route, path, owners.get(route.role!)!, body);
        expect(refusedForRole(told), `${told.sent} → ${told.text}`).toBe(false);
        expect(told.status, `${told.sent} → ${told.text}`).toBeLessThan(500);
        statuses.add(told.status);
      }
      if (route.method !== 'GET') rows = (await look(alpha.organisation)).rows;
      const isElsewhere = [UNNAMED, OF_THE_BROKER, OF_ONE_OWNER].some((one) => one.test(route.path));
      if (statuses.size === 1 && statuses.has(404) && !isElsewhere) missed.push(named(route));
    }
    expect(missed, missed.join(', ')).toEqual([]);
  }, 360_000);
});
