/** Where this checkout is, and the programs that were built of it. */
import { join } from 'node:path';
import { inject } from 'vitest';

export { ROOT } from './root.ts';

/** The folder of the programs, laid out as the published package. */
export const PROGRAMS = inject('programs');

/** The command line, as `npx agent-broker` starts it. */
export const BIN = join(PROGRAMS, 'bin', 'agent-broker.js');

/**
 * Where the programs keep what Node compiled of them, for all that this run starts: it saves an eighth of the processor time in which a broker
 * starts. For the environment, as NODE_COMPILE_CACHE.
 */
export const COMPILE_CACHE = join(PROGRAMS, 'compile-cache');

/** A broker that a test may kill: see `broker-process.ts`. */
export const CHILD_BROKER = join(PROGRAMS, 'dist', 'child-broker.js');
