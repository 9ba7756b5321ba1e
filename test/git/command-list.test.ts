/** The parser of a push's beginning: what it accepts, and that no input makes it read anything else than was sent. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { CommandListReader, type CommandListState, MAX_HEAD_BYTES } from '../../broker/git/command-list.ts';
import { MAX_PKT_LINE_LENGTH, readPktLine } from '../../broker/git/pkt-line.ts';
import { refNameProblem } from '../../broker/policy/refs/name.ts';
import { commandList, pktLine, ZERO } from '../world/git-bytes.ts';
import { GIT_ENVIRONMENT } from '../world/servers/git-host.ts';

const A = 'a'.repeat(40);
const B = 'b'.repeat(40);
const bytes = (text: string) => Buffer.from(text, 'latin1');

/** Feeds it in pieces of these sizes, repeating the last one. */
function read(input: Buffer, sizes: readonly number[] = [input.length]): CommandListState {
  const reader = new CommandListReader();
  let at = 0;
  for (let i = 0; at < input.length; i++) {
    const size = Math.max(1, sizes[Math.min(i, sizes.length - 1)] ?? 1);
    const state = reader.push(input.subarray(at, at + size));
    at += size;
    if (state.kind !== 'more') return state;
  }
  return reader.end();
}

describe('pkt-lines', () => {
  test.each([
    ['0000', { kind: 'line', line: { kind: 'flush' }, next: 4 }],
    ['0001', { kind: 'line', line: { kind: 'delim' }, next: 4 }],
    ['0002', { kind: 'line', line: { kind: 'response_end' }, next: 4 }],
    ['0005a', { kind: 'line', line: { kind: 'data', data: bytes('a') }, next: 5 }],
    ['000Aabcdef', { kind: 'line', line: { kind: 'data', data: bytes('abcdef') }, next: 10 }],
    ['', { kind: 'incomplete' }],
    ['00', { kind: 'incomplete' }],
    ['0006a', { kind: 'incomplete' }],
    [`fff0${'x'.repeat(10)}`, { kind: 'incomplete' }],
  ])('%j', (text, expected) => expect(readPktLine(bytes(text), 0)).toEqual(expected));

  test.each(['0003', '0004', 'zzzz', 'z', '-001', '+005a', ' 005', '0x05', `fff1${'x'.repeat(65_533)}`])(
    '%j is not a pkt-line',
    (text) => expect(readPktLine(bytes(text), 0).kind).toBe('malformed'),
  );

  test('the longest pkt-line has 65520 bytes', () => {
    const longest = bytes(`fff0${'x'.repeat(MAX_PKT_LINE_LENGTH - 4)}`);
    expect(readPktLine(longest, 0)).toMatchObject({ kind: 'line', next: MAX_PKT_LINE_LENGTH });
  });
});

describe('ref names', () => {
  const names = [
    ...[
      'refs/heads/main',
      'refs/heads/a/b/c',
      'refs/tags/v1.0',
      'refs/heads/größe',
      'refs/heads/-x',
      'refs/for/main%x',
    ],
    ...[
      'refs/heads/a.lock',
      'refs/heads/a.lock/b',
      'refs/heads/.a',
      'refs/heads/a/.b',
      'refs/heads/a..b',
      'refs/heads/a.',
    ],
    ...['refs/heads/a b', 'refs/heads/a~b', 'refs/heads/a^b', 'refs/heads/a:b', 'refs/heads/a?b', 'refs/heads/a*b'],
    ...['refs/heads/a[b', 'refs/heads/a\\b', 'refs/heads/a@{b', 'refs/heads/@', 'refs/heads/a@b', 'refs/heads/a//b'],
    ...['refs/heads/a/', '/refs/heads/a', 'refs/heads/a\x7fb', 'refs/heads/a\tb', 'refs/heads/a\nb', 'refs/heads/PACK'],
    ...['refs/heads/a.b', 'refs/heads/a{b', 'refs/heads/a]b', 'refs/heads/%2e%2e', "refs/heads/a'b", 'refs/heads/a"b'],
  ];
  test.each(names)('%j is accepted if git accepts it', (name) => {
    const { status } = spawnSync('git', ['check-ref-format', name], { env: GIT_ENVIRONMENT });
    expect(refNameProblem(name) === undefined).toBe(status === 0);
  });

  test.each([
    'HEAD',
    'main',
    'refs/x',
    'refs/',
    'refs/heads',
    'Refs/heads/x',
    'refs/heads/a\u202eb',
    'refs/heads/a\u200bb',
    'refs/heads/a\u3164',
    'refs/heads/a\u034fb',
    'refs/heads/a\u2800',
    'refs/heads/a\ufe0f',
    `refs/heads/${'é'.repeat(507)}`,
  ])('%j is refused', (name) => expect(refNameProblem(name)).toBeDefined());

  test.each(['refs/heads/❤\ufe0f', 'refs/heads/gro\u0308ße', `refs/heads/${'é'.repeat(506)}x`])(
    '%j is accepted',
    (name) => expect(refNameProblem(name)).toBeUndefined(),
  );
});

describe('command lists', () => {
  const list = bytes(
    `${commandList([`${ZERO} ${A} refs/heads/a\0 report-status`, `${A} ${B} refs/heads/b`, `${A} ${ZERO} refs/tags/c`])}PACKxyz`,
  );
  const refs = [
    { name: 'refs/heads/a', action: 'create' },
    { name: 'refs/heads/b', action: 'update' },
    { name: 'refs/tags/c', action: 'delete' },
  ];

  test.each([[[list.length]], [[1]], [[3]], [[5, 1, 100]], [[200, 7]]])('a list is read in pieces of %j', (sizes) => {
    const state = read(list, sizes);
    expect(state).toMatchObject({ kind: 'done', push: { refs, hasPack: true } });
    if (state.kind !== 'done') return;
    expect(String(list.subarray(state.packAt))).toBe('PACKxyz');
    expect(list.subarray(0, state.bytes.length).equals(state.bytes)).toBe(true);
  });

  test('a list that is cut anywhere is malformed', () => {
    const cuts = Array.from({ length: list.length - 'PACKxyz'.length }, (_, at) => read(list.subarray(0, at)).kind);
    expect(new Set(cuts)).toEqual(new Set(['malformed']));
  });

  test('reading a list byte by byte takes linear time', () => {
    const long = bytes(commandList(Array.from({ length: 1000 }, (_, i) => `${ZERO} ${A} refs/heads/${i}`)));
    const begun = performance.now();
    expect(read(long, [1]).kind).toBe('done');
    expect(performance.now() - begun).toBeLessThan(2_000);
  });

  test('an endless list is refused at the limit', () => {
    const reader = new CommandListReader();
    const line = bytes(pktLine(`${ZERO} ${A} refs/heads/${'x'.repeat(1_000)}`));
    let given = 0;
    for (let i = 0; i < 10_000; i++) {
      given += line.length;
      const piece = Buffer.from(line);
      piece.write(String(i).padStart(6, '0'), 100);
      const state = reader.push(piece);
      if (state.kind !== 'more') return expect([state.kind, given < 2 * MAX_HEAD_BYTES]).toEqual(['malformed', true]);
    }
    return expect.unreachable();
  });
});
