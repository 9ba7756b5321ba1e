/**
 * The beginnings of pushes, valid and damaged: however they are split into chunks, the same is read, and equals what a simple pkt-line parser
 * (gitprotocol-common) reads.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { CommandListReader, type CommandListState } from '../../../broker/git/command-list.ts';
import { refNameProblem } from '../../../broker/policy/refs/name.ts';
import { commandList, pktLine, ZERO } from '../../world/git-bytes.ts';
import type { Count, Fuzzed } from '../fuzz.ts';

const A = 'a'.repeat(40);

const oid = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(ZERO, A, 'b'.repeat(40)) },
  fc.constantFrom('c'.repeat(64), '0'.repeat(64), 'g'.repeat(40), 'A'.repeat(40), ''),
);
const name = fc
  .tuple(
    fc.constantFrom('refs/heads/', 'refs/heads/', 'refs/tags/', 'refs/', ''),
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom('a', 'b/c', 'PACK') },
      fc.constantFrom('x.lock', '\xc3\xa9', '\xe9', '\x1b', '..', 'a b', '\n', '0000', ''),
    ),
    fc.nat(9),
  )
  .map((all) => all.join(''));
const command = fc.tuple(oid, oid, name).map((all) => all.join(' '));
const capabilities = fc.constantFrom(
  '',
  '\0 report-status',
  '\0 push-options',
  '\0push-options=1',
  '\0object-format=sha256 atomic',
  '\0\0',
  '\0x\n',
);
const tail = fc.constantFrom('', '', pktLine('o'), `${pktLine('o')}0000`, '0000', '0001', 'PACK', '0000PACK');
const list = fc
  .record({
    shallow: fc.constantFrom('', '', pktLine(`shallow ${A}`), pktLine('shallow x')),
    commands: fc.array(command, { maxLength: 4 }),
    first: capabilities,
    later: fc.constantFrom('', '', '', '\0x'),
    tail,
  })
  .map(
    ({ shallow, commands, first, later, tail: rest }) =>
      `${shallow}${commandList(commands.map((one, i) => one + (i === 0 ? first : later)))}${rest}`,
  );

const damage = fc.record({
  how: fc.constantFrom('cut', 'insert', 'leave out', 'change'),
  at: fc.nat(400),
  value: fc.nat(255),
});

/** Text in which each character is a byte. */
function damaged(input: string, { how, at, value }: { how: string; at: number; value: number }): string {
  const [before, rest] = [input.slice(0, at), input.slice(at)];
  if (how === 'cut') return before;
  if (how === 'insert') return before + ['\0', 'f', '0000', '\n', 'ffff', '0004'][value % 6] + rest;
  if (how === 'leave out') return before + rest.slice(value % 8);
  return before + (rest === '' ? '' : String.fromCharCode(value) + rest.slice(1));
}

/** Parses it in chunks of these sizes, repeating the last size. */
function read(input: Buffer, sizes: readonly number[]): CommandListState {
  const reader = new CommandListReader();
  for (let at = 0, i = 0; at < input.length; i++) {
    const size = sizes[Math.min(i, sizes.length - 1)] ?? input.length;
    const state = reader.push(input.subarray(at, at + size));
    at += size;
    if (state.kind !== 'more') return state;
  }
  return reader.end();
}

/** Returns the texts of the pkt-lines up to a flush, and the offset after it. */
function linesUntilFlush(input: Buffer, from: number): { lines: string[]; next: number } {
  const lines: string[] = [];
  for (let at = from; ; ) {
    const length = Number.parseInt(input.toString('latin1', at, at + 4), 16);
    if (length === 0) return { lines, next: at + 4 };
    lines.push(input.toString('utf8', at + 4, at + length).replace(/\n$/, ''));
    at += length;
  }
}

export function pktLines(count: Count): Fuzzed {
  const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 4 });
  const property = fc.property(list, fc.array(damage, { maxLength: 2 }), sizes, (whole, damages, pieces) => {
    const input = Buffer.from(damages.reduce(damaged, whole), 'latin1');
    const read1 = read(input, []);
    const read2 = read(input, pieces);
    // Which of two faults is found first may depend on the chunks.
    expect(read2.kind).toBe(read1.kind);
    if (read1.kind !== 'done' || read2.kind !== 'done') return count('refused');
    count('accepted');
    expect([read2.push, read2.packAt]).toEqual([read1.push, read1.packAt]);
    const { refs, options, capabilities: asked, hasPack } = read1.push;
    const { lines, next } = linesUntilFlush(input, 0);
    const commands = lines
      .filter((line) => !line.startsWith('shallow '))
      .map((line) => (line.split('\0')[0] as string).replace(/\n$/, '').split(' '));
    expect(commands.map((parts) => parts.slice(2).join(' '))).toEqual(refs.map((ref) => ref.name));
    const actions = commands.map(([old = '', now = '']) =>
      /^0+$/.test(old) ? 'create' : /^0+$/.test(now) ? 'delete' : 'update',
    );
    expect(actions).toEqual(refs.map(({ action }) => action));
    expect(hasPack).toBe(actions.some((action) => action !== 'delete'));
    expect(new Set(refs.map((ref) => ref.name)).size).toBe(refs.length);
    expect(refs.filter((ref) => refNameProblem(ref.name) !== undefined)).toEqual([]);
    const behind = asked.some((one) => /^push-options(=|$)/.test(one))
      ? linesUntilFlush(input, next)
      : { lines: [], next };
    expect([options, read1.packAt]).toEqual([behind.lines, behind.next]);
  });
  return { property, reaches: ['refused', 'accepted'] };
}
