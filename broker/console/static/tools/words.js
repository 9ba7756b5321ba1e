// What a tool does, in words.

export const EFFECT = { reads: 'only reads', writes: 'writes', destroys: 'may destroy' };
