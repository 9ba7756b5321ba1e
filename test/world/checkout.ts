/** Paths of this checkout and of the programs built from it. */
import { join } from 'node:path';
import { inject } from 'vitest';

export { ROOT } from './root.ts';

/** The folder of the programs, laid out as the published package. */
export const PROGRAMS = inject('programs');

/** The command line, as `npx agent-broker` starts it. */
export const BIN = join(PROGRAMS, 'bin', 'agent-broker.js');

/**
 * The programs' compile cache, shared by all that this run starts: it saves an eighth of the processor time of a broker's start. For
 * NODE_COMPILE_CACHE.
 */
export const COMPILE_CACHE = join(PROGRAMS, 'compile-cache');

/** The console as in the package: from source a broker reads 250 files at its start. */
export const CONSOLE_BUNDLE = join(PROGRAMS, 'dist', 'broker', 'console', 'bundle');

/** A broker that a test can kill: see `broker-process.ts`. */
export const CHILD_BROKER = join(PROGRAMS, 'dist', 'child-broker.js');
