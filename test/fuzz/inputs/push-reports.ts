/**
 * Reports of code hosts on pushes, valid and damaged: however they are split into chunks, the same is read, and a complete report is read as it was
 * generated, in a band of side-band-64k or not.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { ReportReader } from '../../../broker/git/read-report.ts';
import { commandList, pktLine } from '../../world/git-bytes.ts';
import type { Count, Fuzzed } from '../fuzz.ts';

const NAMES = ['refs/heads/a', 'refs/heads/b', 'refs/tags/a'];
type Told = 'ok' | 'ng' | 'nothing';

const told = fc.array(fc.constantFrom<Told>('ok', 'ok', 'ng', 'nothing'), { minLength: 3, maxLength: 3 });
const noise = fc.constantFrom('', '', '', 'option refname refs/heads/b\n', 'ng refs/heads/c no\n', 'x', '\n');
const progress = fc.constantFrom('', pktLine('\x02'), pktLine('\x02ng refs/heads/a no\n'), pktLine('\x020000'));
const damage = fc.option(fc.record({ at: fc.nat(300), by: fc.constantFrom('', '0000', '\n', 'ng', '\x01', '0005') }), {
  freq: 2,
});

/** Wraps a report in packets of band 1 of this length, with other packets in between; unchanged for length 0. */
function inBand(report: string, length: number, between: string): string {
  if (length === 0) return report;
  const packets: string[] = [];
  for (let at = 0; at < report.length; at += length) packets.push(pktLine(`\x01${report.slice(at, at + length)}`));
  return `${between}${packets.join(between)}0000`;
}

/** Parses it in chunks of these sizes, repeating the last size. */
function read(input: Buffer, sizes: readonly number[]) {
  const reader = new ReportReader({ refs: NAMES.map((name) => ({ name })), capabilities: ['report-status'] });
  for (let at = 0, i = 0; at < input.length; i++) {
    const size = sizes[Math.min(i, sizes.length - 1)] ?? input.length;
    reader.push(input.subarray(at, at + size));
    at += size;
  }
  return reader.read();
}

/** Returns the content of a complete report. */
function expected(of: readonly Told[], isUnpacked: boolean) {
  const refused = NAMES.filter((_, i) => !isUnpacked || of[i] === 'ng');
  return { refused, ...(isUnpacked && of.includes('nothing') && { absent: 'missing' }) };
}

export function pushReports(count: Count): Fuzzed {
  const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 4 });
  const shape = fc.record({
    of: told,
    isUnpacked: fc.constantFrom(true, true, false),
    noise,
    progress,
    band: fc.nat(20),
  });
  const property = fc.property(shape, damage, sizes, ({ of, isUnpacked, noise, progress, band }, harm, pieces) => {
    const lines = [
      isUnpacked ? 'unpack ok\n' : 'unpack index-pack failed\n',
      ...NAMES.flatMap((name, i) => [of[i] === 'nothing' ? '' : `${of[i]} ${name} reason\n`, noise]),
    ];
    const whole = inBand(commandList(lines.filter((line) => line !== '')), band, progress);
    const input = Buffer.from(harm ? whole.slice(0, harm.at) + harm.by + whole.slice(harm.at + 1) : whole, 'latin1');
    const found = read(input, []);
    expect(read(input, pieces)).toEqual(found);
    if (harm) return count('damaged');
    count(found.refused.length > 0 ? 'refused' : 'accepted');
    expect(found).toEqual(expected(of, isUnpacked));
  });
  return { property, reaches: ['damaged', 'refused', 'accepted'] };
}
