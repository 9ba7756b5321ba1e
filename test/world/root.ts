import { resolve } from 'node:path';

/** The root of this checkout. Also for programs that Vitest does not run. */
export const ROOT = resolve(import.meta.dirname, '..', '..');
