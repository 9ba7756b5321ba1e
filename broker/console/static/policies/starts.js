// Templates for a new policy.
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {{ title: string, what: string, name: string, rules: Rule[] }} Start */

/** @type {Rule[]} */
const READS = [
  { name: 'reads', effect: 'allow', methods: ['GET'] },
  { name: 'reads sent as POST', effect: 'allow', scopes: ['*.read', '*:read'], methods: ['POST'] },
];

/** By the value in the address. @type {Readonly<Record<string, Start>>} */
export const STARTS = {
  careful: {
    title: 'Reads pass, changes wait',
    what: 'Reads are made immediately. Everything that changes something waits for a person.',
    name: 'careful',
    rules: [
      ...READS,
      { name: 'changes', effect: 'require_approval', methods: ['PUT', 'PATCH', 'DELETE'] },
      {
        name: 'changes sent as POST',
        effect: 'require_approval',
        methods: ['POST'],
        when: "!scope.endsWith('.read') && !scope.endsWith(':read')",
      },
    ],
  },
  'read-only': {
    title: 'Reads only',
    what: 'Reads are made immediately. Everything else is refused: no rule allows it.',
    name: 'read-only',
    rules: READS,
  },
  supervised: {
    title: 'A person for every call',
    what: 'No call is made before a person has reviewed it.',
    name: 'supervised',
    rules: [{ name: 'everything', effect: 'require_approval' }],
  },
  empty: {
    title: 'Empty',
    what: 'No rules yet: every call is refused until one allows it.',
    name: 'new-policy',
    rules: [],
  },
};
