/** Memory holds the master key and credentials: nothing of it is written to disk when the process crashes. */
import { writeFileSync } from 'node:fs';

/**
 * Switches diagnostic reports off, also where NODE_OPTIONS asks for them, and takes all memory out of core dumps (Linux, core(5): no kind of
 * mapping is dumped). The core itself is the operator's to forbid, by RLIMIT_CORE: what is left of it has registers alone.
 */
export function keepMemoryOffDisk(): void {
  const { report } = process;
  report.reportOnFatalError = false;
  report.reportOnSignal = false;
  report.reportOnUncaughtException = false;
  report.excludeEnv = true;
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // Not Linux, or a /proc that cannot be written.
  }
}
