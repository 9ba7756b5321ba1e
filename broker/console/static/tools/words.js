// The effect of a tool, in words.
/** @typedef {import('../../answers.ts').Tool} Tool */

/** @type {Record<Tool['effect'], string>} */
export const EFFECT = { reads: 'only reads', writes: 'writes', destroys: 'may destroy' };
