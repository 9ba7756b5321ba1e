/**
 * For Node's `--import`: moves the clock of a process by the milliseconds that the file TEST_CLOCK_FILE holds, and goes on
 * looking at it. The clocks that nobody can set (performance.now, the time since the machine started) stay as they are.
 */
import { readFileSync } from 'node:fs';

const file = process.env.TEST_CLOCK_FILE!;
const RealDate = Date;
let shiftMs = 0;
const read = () => {
  const text = readFileSync(file, 'utf8');
  // Empty while it is written.
  if (text !== '') shiftMs = Number(text);
};
read();
setInterval(read, 10).unref();

const now = () => RealDate.now() + shiftMs;
globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [now()] : given) as [number]));
  }
  static override now = now;
} as DateConstructor;
