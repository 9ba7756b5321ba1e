/** Where this checkout is. */
import { join, resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '..', '..');

/** The command line, as `npx agent-broker` starts it. */
export const BIN = join(ROOT, 'bin', 'agent-broker.js');
