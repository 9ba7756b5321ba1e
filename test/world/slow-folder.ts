/**
 * For Node's `--import`: every write of a read's note takes 200 ms, as on a slow network volume. With SLOW_AFTER only after that many synchronous
 * ones.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const WRITE_MS = 200;
const { write, writeSync } = fs;
let fast = Number(process.env.SLOW_AFTER ?? 0);

fs.writeSync = ((...given: Parameters<typeof writeSync>) => {
  if (typeof (given as unknown[])[4] === 'number' && fast-- <= 0)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WRITE_MS);
  return writeSync(...given);
}) as typeof writeSync;
fs.write = ((...given: Parameters<typeof write>) =>
  setTimeout(() => write(...given), WRITE_MS)) as unknown as typeof write;
syncBuiltinESMExports();
