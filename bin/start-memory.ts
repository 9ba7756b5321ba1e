import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Frees the memory that only the start needed, a fifth of all, by a full garbage collection: V8 would not collect on an idle
 * broker. Takes some 50 ms.
 */
export function releaseStartMemory(): void {
  // Exposes the collector without requiring a command-line flag.
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as (how: object) => void)({ type: 'major', flavor: 'last-resort' });
  setFlagsFromString('--no-expose-gc');
}
