// Variables and functions of a condition (CEL), one line each. `insert`: the text that choosing it inserts.
/** @typedef {{ insert: string, words: string }} Word */

/** @type {readonly Word[]} */
export const VARIABLES = [
  { insert: 'request.method', words: 'the method: GET, POST, PUT, PATCH or DELETE' },
  { insert: 'request.endpoint', words: 'the path, without the query' },
  { insert: 'request.body', words: 'the data that is sent; test a member with has() before reading it' },
  { insert: 'request.query', words: 'the query by name, as texts' },
  { insert: 'request.query_all', words: 'the query by name, each a list of texts' },
  { insert: 'request.headers', words: 'the headers that are sent on, by names in lower case' },
  {
    insert: 'request.refs',
    words:
      'of a code host: the branches and tags that the call writes, by git or in any other way; each has name and action',
  },
  {
    insert: 'request.graphql',
    words: 'of GraphQL only: operation, and fields with name and arguments; test with has(request.graphql)',
  },
  { insert: 'request.git', words: 'of git only: service, refs and push_options; test with has(request.git)' },
  { insert: 'first_time.operation', words: 'the agent never made a call of this kind before' },
  { insert: 'first_time.recipient', words: 'the call names a recipient whom no call of the agent named before' },
  {
    insert: 'first_time.repository',
    words: 'the call is about a repository that no call of the agent was about before',
  },
  { insert: 'agent.name', words: 'the name of the agent' },
  { insert: 'agent.id', words: 'the uuid of the agent' },
  { insert: 'agent.agent_id', words: 'the id of the agent, agt_…' },
  { insert: 'agent.owner_id', words: 'the id of the owner who answers for the agent' },
  { insert: 'agent.organisation_id', words: 'the id of the organisation' },
  {
    insert: 'agent.labels',
    words: "the labels of the agent, of a child those of its parent; test with 'prod' in agent.labels",
  },
  { insert: 'agent.parent_agent_id', words: 'of a child the id of its parent, else null' },
  { insert: 'caller.verified', words: 'whether an issuer vouches for the person; test with has(caller.verified)' },
  { insert: 'platform', words: 'the id of the platform' },
  { insert: 'scope', words: 'the scope of the call' },
  { insert: 'now', words: 'the moment of the decision' },
];

/** @type {readonly Word[]} */
export const FUNCTIONS = [
  { insert: 'has(request.body.amount)', words: 'whether the member exists' },
  { insert: 'size(request.body)', words: 'how many members, entries or characters' },
  { insert: "scope.startsWith('crm:')", words: 'whether a text begins with another' },
  { insert: "scope.endsWith('.read')", words: 'whether a text ends with another' },
  { insert: "request.endpoint.contains('admin')", words: 'whether a text contains another' },
  { insert: "request.endpoint.matches('^/v[0-9]+/')", words: 'whether a regular expression (RE2) matches' },
  { insert: "'draft' in request.query", words: 'whether a name, or an entry of a list, exists' },
  { insert: "request.query_all.all(name, name != 'force')", words: 'whether it is true for all of them' },
  { insert: "request.query_all.exists(name, name == 'force')", words: 'whether it is true for one of them' },
  {
    insert: "request.query_all.exists_one(name, name == 'force')",
    words: 'whether it is true for exactly one of them',
  },
  { insert: "now.getHours('Europe/Berlin') < 8", words: 'the hour of a time zone; also getDayOfWeek, 0 is Sunday' },
  { insert: "int('5') > 3", words: 'a text as a whole number; also double' },
  { insert: "string(5) == '5'", words: 'a value as a text' },
];

/** Complete conditions that are often needed. @type {readonly Word[]} */
export const WHOLE = [
  {
    insert: 'request.refs.exists(r, r.name == "refs/heads/main")',
    words: 'writing the branch main, by git or any other way',
  },
  { insert: 'has(request.body.amount) && request.body.amount > 1000', words: 'an amount over 1000' },
  { insert: "first_time.recipient && request.method != 'GET'", words: 'sending to somebody for the first time' },
  {
    insert: "now.getHours('Europe/Berlin') < 8 || now.getHours('Europe/Berlin') >= 18",
    words: 'outside of working hours',
  },
];

const ALL = [...VARIABLES, ...FUNCTIONS, ...WHOLE];

/** Returns the completions of the word at the caret. @param {string} word */
export const wordsFor = (word) =>
  word === ''
    ? []
    : ALL.filter(({ insert }) => insert !== word && insert.toLowerCase().includes(word.toLowerCase())).map(
        ({ insert, words }) => ({ value: insert, words }),
      );
