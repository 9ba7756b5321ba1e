/**
 * For Node's `--import`: moves the clock of a process by the milliseconds in the file TEST_CLOCK_FILE, which is polled. Monotonic clocks
 * (performance.now, the machine's uptime) stay unchanged.
 */
import { readFileSync } from 'node:fs';

const file = process.env.TEST_CLOCK_FILE!;
const RealDate = Date;
let shiftMs = 0;
const read = () => {
  const text = readFileSync(file, 'utf8');
  // The file is empty while it is written.
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
