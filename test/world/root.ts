import { resolve } from 'node:path';

/** Where this checkout is. Also for programs that Vitest does not run. */
export const ROOT = resolve(import.meta.dirname, '..', '..');
