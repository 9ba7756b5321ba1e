import type { Step } from './readable-by.ts';

/**
 * Steps that drop columns and tables which only the previous release read. They have their own numbering; `readableBy` is the first release
 * that works without them. None yet.
 */
export const contractions: Readonly<Record<string, Required<Pick<Step, 'up' | 'readableBy'>>>> = {};
