/** The parser of a code host's report of a push: the refused refs, and whether the report covers all refs. */
import { describe, expect, test } from 'vitest';
import { MAX_PKT_LINE_LENGTH } from '../../broker/git/pkt-line.ts';
import { ReportReader } from '../../broker/git/read-report.ts';
import { commandList, pktLine } from '../world/git-bytes.ts';

const NAMES = ['refs/heads/a', 'refs/heads/größe'];
const NONE = { refused: [] };
const MISSING = { refused: [], absent: 'missing' };

/** Reads an answer in pieces of this size. */
function read(answer: string | Buffer, { size = 7, asked = ['report-status'] } = {}) {
  const reader = new ReportReader({ refs: NAMES.map((name) => ({ name })), capabilities: asked });
  const bytes = Buffer.from(answer);
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return reader.read();
}

/** Encoded as git does: lengths are in bytes. */
const report = (...lines: string[]): Buffer =>
  Buffer.from(commandList(lines.map((line) => Buffer.from(`${line}\n`).toString('latin1'))), 'latin1');
const band = (number: number, data: Buffer | string): Buffer =>
  Buffer.from(pktLine(String.fromCharCode(number) + Buffer.from(data).toString('latin1')), 'latin1');
const FLUSH = Buffer.from('0000');
const [ONE = '', OTHER = ''] = NAMES;
const ALL = ['unpack ok', `ok ${ONE}`, `ok ${OTHER}`];

describe.each([1, 3, 100_000])('in pieces of %i', (size) => {
  test.each([
    ['all of them taken', ALL, NONE],
    ['one refused', ['unpack ok', `ok ${ONE}`, `ng ${OTHER} hook declined`], { refused: [OTHER] }],
    ['all refused', ['unpack ok', `ng ${OTHER} hook declined`, `ng ${ONE} no`], { refused: NAMES }],
    ['a refusal without its reason', ['unpack ok', `ng ${ONE}`, `ok ${OTHER}`], { refused: [ONE] }],
    ['the pack not stored', ['unpack index-pack failed', `ng ${ONE} unpacker error`], { refused: NAMES }],
    [
      'options of report-status-v2',
      ['unpack ok', `ok ${ONE}`, 'option refname refs/changes/1', 'option forced-update', `ng ${OTHER} no`],
      { refused: [OTHER] },
    ],
    ['one ref twice, refused once', ['unpack ok', `ng ${ONE} no`, `ok ${ONE}`, `ok ${OTHER}`], { refused: [ONE] }],
    ['a ref that is not reported', ['unpack ok', `ng ${ONE} no`], { refused: [ONE], absent: 'missing' }],
    ['others than those of the push', [...ALL, 'ng refs/heads/b no', 'ng refs/heads no'], NONE],
    ['lines of another kind', [...ALL, `NG ${ONE} no`, `ngx ${ONE} no`, `ng  ${ONE}`, ` ng ${ONE}`], NONE],
  ])('%s', (_, lines, expected) => {
    const plain = report(...lines);
    expect(read(plain, { size })).toEqual(expected);
    const cut = Math.floor(plain.length / 2);
    const parts = [plain.subarray(0, cut), plain.subarray(cut)].map((part) => band(1, part));
    const progress = band(2, `remote: ng ${ONE} is no line of the report\n`);
    expect(read(Buffer.concat([progress, ...parts.flatMap((part) => [part, progress]), FLUSH]), { size })).toEqual(
      expected,
    );
  });
});

test.each<[string, Buffer | string]>([
  ['an empty answer', ''],
  ['nothing but progress', Buffer.concat([band(2, 'x'), band(2, report(...ALL)), FLUSH])],
  ['a fatal error', Buffer.concat([band(3, 'internal error'), FLUSH])],
  ['a report that is cut', report(...ALL).subarray(0, 40)],
  ['something that is not a pkt-line', '<html>'],
  ['a report after something that is not a pkt-line', `0003${report(...ALL)}`],
  ['a report after the end', Buffer.concat([FLUSH, report(...ALL)])],
  ['a report in a band after the end of the report', Buffer.concat([band(1, FLUSH), band(1, report(...ALL))])],
])('for %s the report is missing', (_, answer) => {
  for (const size of [1, 100_000]) expect(read(answer, { size })).toEqual(MISSING);
});

test.each([
  [[], 'not_asked'],
  [['report-statusx', 'side-band-64k'], 'not_asked'],
  [['report-status'], 'missing'],
  [['agent=x', 'report-status-v2'], 'missing'],
  // git treats it the same way.
  [['report-status=1'], 'missing'],
])('without a report, a push with the capabilities %j has the report %s', (asked, absent) => {
  expect(read('0000', { asked })).toEqual({ refused: [], absent });
});

test('a line of the maximum length is read', () => {
  const text = `ng ${ONE} `;
  const longest = pktLine(text + 'x'.repeat(MAX_PKT_LINE_LENGTH - 4 - text.length));
  expect(read(`${pktLine('unpack ok\n')}${longest}${report(`ok ${OTHER}`)}`, { size: 999 })).toEqual({
    refused: [ONE],
  });
});
