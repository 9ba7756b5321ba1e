import type { Step } from './readable-by.ts';

/**
 * What takes away what only the release before needed: columns and tables that nobody reads any more. Numbered for themselves; each says in
 * `readableBy` the first release that does without. None yet.
 */
export const contractions: Readonly<Record<string, Required<Pick<Step, 'up' | 'readableBy'>>>> = {};
