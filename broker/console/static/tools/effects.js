// Labels for the effect of a tool.
/** @typedef {import('../../answers.ts').Tool} Tool */

/** @type {Record<Tool['effect'], string>} */
export const EFFECT = { reads: 'only reads', writes: 'writes', destroys: 'may destroy' };
