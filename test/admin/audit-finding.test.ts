/** Searching audit rows by words, the history of a held call beside its rows, and the CSV export. */
import { beforeAll, describe, expect, test } from 'vitest';
import { csvLine } from '../../broker/http/audit-csv.ts';
import { expectStatus } from '../world/agent.ts';
import { auditIdOf } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

type Row = { id: string; reason: string; history?: Record<string, unknown>[] | null };

/** Parses records by the grammar of RFC 4180, without our own code. */
function readCsv(text: string): string[][] {
  const records: string[][] = [[]];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
  while (cell.lastIndex < text.length) {
    const found = cell.exec(text);
    if (!found) throw new Error(`no CSV: ${JSON.stringify(text.slice(0, 200))}`);
    records.at(-1)!.push(found[1]?.replaceAll('""', '"') ?? found[2]!);
    if (found[3] === '\r\n') records.push([]);
  }
  return records.slice(0, -1);
}

describe('a CSV line', () => {
  test.each([
    '=1+1',
    '+1',
    '-1',
    '@SUM(A1)',
    '\t=1',
    '\r=1',
    '\n=1',
    '＝1+1',
    '＋1',
    '－1',
    '＠SUM(A1)',
    '=HYPERLINK("http://x","y")',
  ])('%j is not exported as a formula', (cell) => {
    const [[read]] = readCsv(csvLine([cell])) as [[string]];
    expect(read).toBe(`'${cell}`);
  });

  test.each(['a,b', 'a"b', 'a\r\nb', ' a', 'ü "x", y\n', '', 'a=b'])('%j is exported unchanged', (cell) => {
    expect(readCsv(csvLine([cell, 'after']))).toEqual([[cell, 'after']]);
  });

  test('a number stays a number, null is an empty cell', () =>
    expect(csvLine([-1, null, undefined, 0])).toBe('-1,,,0\r\n'));
});

describe.each(STORES)(`searching the audit on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'Triage_100%' }));
  const other = shared(() => organisation.agent({ name: '=cmd|calc' }));
  const polish = shared(() => organisation.agent({ name: 'Łukasz' }));
  const ids: Record<string, string> = {};
  const ask = async (query: string): Promise<Row[]> => {
    const { body } = await expectStatus(200, organisation.ask('GET', `/owner/audit?${query}`));
    return body.rows;
  };
  let [approved, denied, waiting] = ['', '', ''];
  beforeAll(async () => {
    ids.read = auditIdOf(await agent.act(READ));
    ids.refused = auditIdOf(await agent.act({ ...READ, scope: 'demo:nonsense' }));
    ids.formula = auditIdOf(await other.act({ ...READ, reason: '=HYPERLINK("http://evil.example","look")' }));
    ids.letters = auditIdOf(await polish.act({ ...READ, reason: 'Überweisung an Ärztin' }));
    [approved, denied, waiting] = [await agent.hold(WRITE), await agent.hold(WRITE), await agent.hold(WRITE)];
    for (const [id, verb] of [
      [approved, 'approve'],
      [denied, 'deny'],
    ]) {
      const { body } = await organisation.ask('GET', `/owner/approvals/${id}`);
      const answer = await organisation.ask('POST', `/owner/approvals/${id}/${verb}`, {
        ...(verb === 'approve' ? { request_hash: body.request_hash } : { note: 'Not now' }),
      });
      expect(answer.status, answer.text).toBe(200);
    }
  });

  test.each([
    ['a part of a reason, in capitals', 'NONSENSE', () => ['refused']],
    ['the name of an agent, with literal % and _', 'age_100%', () => ['read', 'refused']],
    ['an agent’s own text', 'evil.example', () => ['formula']],
    ['letters beyond ASCII, unchanged', 'Überweisung', () => ['letters']],
    ['letters beyond ASCII, in small letters', 'überweisung an ärztin', () => ['letters']],
    ['letters beyond ASCII, in capitals', 'ÄRZTIN', () => ['letters']],
    ['the name of an agent beyond ASCII', 'łUKASZ', () => ['letters']],
    ['a text without a match', 'nowhere-at-all', () => []],
    ['a literal %', 'demo%nonsense', () => []],
  ])('by %s', async (_what, text, expected) => {
    const found = (await ask(`kind=action&text=${encodeURIComponent(text)}`)).map(({ id }) => id);
    const wanted = expected().map((name) => ids[name]!);
    expect(found.filter((id) => Object.values(ids).includes(id)).sort()).toEqual(wanted.sort());
  });

  test.each(['Łukasz', 'łukasz', 'ŁUKASZ'])('agents by words beyond ASCII: %s', async (word) => {
    const { agents } = (await organisation.ask('GET', `/owner/agents?q=${encodeURIComponent(word)}`)).body;
    expect(agents.map(({ name }: { name: string }) => name)).toEqual(['Łukasz']);
  });

  test('an audit id finds its row only, an approval id all rows of the call', async () => {
    expect((await ask(`text=${ids.read}`)).map(({ id }) => id)).toEqual([ids.read]);
    expect((await ask(`text=${approved}`)).map(({ reason }) => reason)).toEqual(
      expect.arrayContaining(['approval_required_by_policy', 'approval_approved', 'approved']),
    );
    const stranger = await world.organisation();
    expect((await stranger.ask('GET', `/owner/audit?text=${ids.read}`)).body.rows).toEqual([]);
  });

  test('each row of a held call includes the history of the call on request', async () => {
    expect((await ask('limit=1'))[0]).not.toHaveProperty('history');
    const rows = await ask(`history=true&text=${approved}`);
    expect(rows).toHaveLength(3);
    for (const { history } of rows) {
      expect(history).toMatchObject([
        { step: 'held', result: 'held', receipt_kid: expect.any(String) },
        { step: 'approved', by: organisation.owner.id, how: 'api', receipt_kid: expect.any(String) },
        { step: 'made', result: 'allowed', upstream_status: 200, state: 'final' },
      ]);
    }
    const [no] = await ask(`history=true&result=held&text=${denied}`);
    expect(no?.history).toMatchObject([{ step: 'held' }, { step: 'denied', note: 'Not now' }]);
    const [open] = await ask(`history=true&text=${waiting}`);
    expect(open?.history).toMatchObject([{ step: 'held' }]);
    expect((await ask(`history=true&text=${ids.read}`))[0]?.history).toBeNull();
  });

  test('the CSV contains the filtered rows, with names, and no formula', async () => {
    const { text, headers } = await organisation.ask('GET', '/owner/audit/export?format=csv&kind=action');
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [head, ...records] = readCsv(text);
    const column = (name: string) => records.map((record) => record[head!.indexOf(name)]);
    expect(records.every(({ length }) => length === head!.length)).toBe(true);
    expect(column('audit_id')).toEqual(expect.arrayContaining(Object.values(ids)));
    const at = column('audit_id').indexOf(ids.formula!);
    expect(column('agent_name')[at]).toBe("'=cmd|calc");
    expect(column('agent_reason')[at]).toBe('\'=HYPERLINK("http://evil.example","look")');
    const made = records.find((record) => record[head!.indexOf('approval_id')] === approved && record.includes('200'));
    expect(made).toContain(organisation.owner.email);
    const few = await organisation.ask('GET', '/owner/audit/export?format=csv&text=nonsense');
    expect(readCsv(few.text)).toHaveLength(2);
  });

  test.each(['null', 'no JSON', '[]', '7', '{"change":7,"approval":null,"caller":null}'])(
    'a row whose flags were altered to %s is shown and exported like the others',
    async (flags) => {
      const own = await world.organisation();
      await expectStatus(201, own.ask('POST', '/owner/policies', { name: 'altered', rules: [] }));
      const altered = await world.db
        .updateTable('audit_rows')
        .set({ flags })
        .where('organisation_id', '=', own.id)
        .returning('id')
        .execute();
      expect(altered).not.toEqual([]);
      const ids = altered.map(({ id }) => id).sort();
      const sorted = (found: { id: string }[]) => found.map(({ id }) => id).sort();
      const listed = await expectStatus(200, own.ask('GET', '/owner/audit'));
      expect(sorted(listed.body.rows)).toEqual(ids);
      const { text: lines } = await own.ask('GET', '/owner/audit/export');
      expect(
        sorted(
          lines
            .trimEnd()
            .split('\n')
            .map((line: string) => JSON.parse(line)),
        ),
      ).toEqual(ids);
      const { text } = await own.ask('GET', '/owner/audit/export?format=csv');
      const [head, ...records] = readCsv(text);
      const column = (name: string) => records.map((record) => record[head!.indexOf(name)]);
      expect(column('audit_id').sort()).toEqual(ids);
      expect(new Set([...column('actor'), ...column('actor_how')])).toEqual(new Set(['']));
    },
  );
});
