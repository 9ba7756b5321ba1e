/** `npm run bench -- verify`: CPU time and peak memory of `agent-broker verify export` for exports of two sizes. */
import { spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { signRow } from '../broker/audit/receipt.ts';
import { createCompactSigner } from '../broker/crypto/jws.ts';
import { generateSigningKey, importSigningKey } from '../broker/crypto/key-set.ts';
import type { LogLine } from '../broker/receipt-log/export-log.ts';
import { logRow } from '../broker/receipt-log/log-rows.ts';
import { appendLeaves, type Edge, leafHash, rootOfEdge, TILE_WIDTH } from '../broker/receipt-log/merkle.ts';
import { checkpointNote, generateNoteKey, logKey, signHead, vkeyOf } from '../broker/receipt-log/note.ts';
import { present } from '../broker/runtime/present.ts';
import { wholeNumber } from './bench-options.ts';
import { cpuSeconds, residentBytes } from './process.ts';
import { readRow } from './read-row.ts';

const ORGANISATION = '00000000-0000-4000-8000-000000000001';

export const VERIFY_USAGE = `Usage: npm run bench -- verify [--rows N]

  --rows N         rows of the larger export; the smaller one has a tenth (1000000: a file of 2.5 GB)
`;

/** Parses the command line. Throws an Error with a message for the user. */
export function readVerifyOptions(args: readonly string[]): { rows: number } {
  const { values } = parseArgs({ args: [...args], options: { rows: { type: 'string' } } });
  return { rows: wholeNumber('--rows', values.rows, 1_000_000, 10_000_000) };
}

const COMMAND = fileURLToPath(new URL('../bin/agent-broker.js', import.meta.url));
const ORIGIN = 'broker.example/orgs/00000000-0000-4000-8000-000000000001';
/** The interval of memory readings. */
const LOOK_MS = 50;

/** Runs the bench. Returns the exit code: 1 when an export does not verify. */
export async function benchVerify({ rows }: { rows: number }): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-verify-'));
  try {
    for (const count of new Set([Math.max(1, Math.floor(rows / 10)), rows])) {
      writeExport(folder, count);
      const megabytes = statSync(join(folder, 'log.jsonl')).size / 1e6;
      process.stdout.write(`${count} rows, ${megabytes.toFixed(0)} MB:\n`);
      for (const [what, more] of [
        ['rows, hashes and the checkpoint', []],
        ['and the signatures of all receipts', ['--receipt-keys', join(folder, 'keys.json')]],
      ] as const) {
        const found = await measure([join(folder, 'log.jsonl'), '--key', join(folder, 'log.key'), ...more]);
        process.stdout.write(
          `  ${what.padEnd(36)} ${found.cpu.toFixed(1)} s of CPU, ${((found.cpu / count) * 1e6).toFixed(0)} µs a row, ` +
            `${(found.bytes / 1e6).toFixed(0)} MB of memory at the most\n`,
        );
        if (found.code !== 0) return 1;
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return 0;
}

/** Runs the command on files. `bytes`: peak resident bytes of the command and its descendants. */
async function measure(args: readonly string[]): Promise<{ code: number | null; cpu: number; bytes: number }> {
  const child = spawn(process.execPath, [COMMAND, 'verify', 'export', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const pid = present(child.pid, 'process');
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const most = { cpu: 0, bytes: 0 };
  while (child.exitCode === null && child.signalCode === null) {
    most.cpu = Math.max(most.cpu, cpuSeconds([pid]));
    most.bytes = Math.max(most.bytes, residentBytes([pid]));
    await wait(LOOK_MS);
  }
  return { code: await ended, ...most };
}

/** Writes an export of reads with their receipts, as a broker does, and the keys that verify it. */
function writeExport(folder: string, count: number): void {
  const evidence = importSigningKey(generateSigningKey());
  const sign = createCompactSigner();
  const log = generateNoteKey();
  const key = logKey(ORIGIN, log.publicKey);
  const edge: Edge = { size: 0, tiles: [] };
  const whole = new Map<string, LogLine>();
  const file = openSync(join(folder, 'log.jsonl'), 'w');
  const write = (lines: readonly LogLine[]) =>
    writeSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  // The checkpoint in the first line covers the whole log, so a placeholder is written until it is known.
  const header = (checkpoint: string): LogLine => ({
    type: 'log',
    origin: ORIGIN,
    first: 0,
    size: count,
    checkpoint,
    keys: [vkeyOf(key)],
  });
  const noteOf = (root: Uint8Array) => {
    const head = { origin: ORIGIN, size: count, root };
    const privateKey = createPrivateKey({ key: log.privatePkcs8, format: 'der', type: 'pkcs8' });
    return checkpointNote(head, signHead(head, key, privateKey));
  };
  write([header(noteOf(Buffer.alloc(32)))]);
  for (let start = 0; start < count; start += TILE_WIDTH) {
    const rows = Array.from({ length: Math.min(TILE_WIDTH, count - start) }, (_, at) => {
      const row = readRow(ORGANISATION);
      signRow(row, evidence, sign, 'did:web:broker.example');
      return { index: start + at, row };
    });
    const leaves = rows.map(({ row }) => leafHash(Buffer.from(present(row.row_hash, 'hash'), 'hex')));
    for (const { level, index, hashes } of appendLeaves(edge, leaves))
      if (level > 0)
        whole.set(`${level} ${index}`, {
          type: 'tile',
          level,
          index,
          hashes: Buffer.concat(hashes).toString('base64'),
        });
    const hashes = Buffer.concat(leaves).toString('base64');
    write([...rows.map(logRow), { type: 'tile', level: 0, index: start / TILE_WIDTH, hashes }]);
  }
  write([...whole.values()]);
  writeSync(file, `${JSON.stringify(header(noteOf(rootOfEdge(edge))))}\n`, 0);
  closeSync(file);
  writeFileSync(join(folder, 'log.key'), `${vkeyOf(key)}\n`);
  const { kid, publicJwk } = evidence;
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [{ ...publicJwk, alg: 'ES256', use: 'sig', kid }] }));
}
