/** The parts of `npm run prove`: what it kills, makes fail and tries. */

export type Part = {
  name: string;
  /** For the report: what is done, and what is checked besides the common invariants. */
  what: string;
  /** The Vitest file: in `test/prove/` only the test of this name runs, otherwise the whole file. */
  file: string;
  stores: readonly ('sqlite' | 'postgres')[];
  /** `cuts`: as often as requested, divided among all such parts. `once`: one test that does everything. `seconds`: once, for as long as requested. */
  times: 'cuts' | 'once' | 'seconds';
  /** Whether it mounts a file system. */
  needsRoot?: true;
};

/** Why a part is skipped. */
export const NEEDS_ROOT = 'only root may mount a file system';
export const isRoot = process.getuid?.() === 0;

const BOTH = ['sqlite', 'postgres'] as const;
const KILLS = 'test/prove/kills.test.ts';
const kill = (name: string, what: string, stores: Part['stores'] = BOTH): Part => ({
  name,
  what,
  file: KILLS,
  stores,
  times: 'cuts',
});

/** A test of `faults.test.ts`, by name. */
const fault = (name: string, what: string, store: 'sqlite' | 'postgres', more: Pick<Part, 'needsRoot'> = {}): Part => ({
  name,
  what,
  file: 'test/prove/faults.test.ts',
  stores: [store],
  times: 'once',
  ...more,
});

/** Sequences of steps on a running broker and its model. */
const model = (name: string, what: string): Part => ({
  name: `model-${name}`,
  what,
  file: 'test/fuzz/models.test.ts',
  stores: BOTH,
  times: 'seconds',
});

/** Random inputs for one parser. */
const input = (name: string, what: string): Part => ({
  name: `fuzz-${name}`,
  what,
  file: 'test/fuzz/inputs.test.ts',
  stores: ['sqlite'],
  times: 'seconds',
});

/** An existing test file of the suite. */
const suite = (name: string, what: string, file: string, stores: Part['stores']): Part => ({
  name,
  what,
  file: `test/${file}.test.ts`,
  stores,
  times: 'once',
});

export const PARTS: readonly Part[] = [
  kill('calls', 'Reads, changes, deletions, held and refused calls, half of the changes with an `Idempotency-Key`'),
  kill('streams', 'Streamed responses and bodies of raw requests: a client gets an error for an interrupted one'),
  kill('approvals', 'Calls are held, approved by one person or by two, denied and executed'),
  kill(
    'look-backs',
    'Reads that a look-back condition refers to, and changes after them: refused from the moment at which the platform has received the read, also when the read was interrupted',
  ),
  kill(
    'refreshes',
    'Tokens valid for two seconds, from a server that rotates refresh tokens: the connection works again, or reports `platform_reauth_needed`',
  ),
  kill(
    'exchanges',
    'Tokens of Apps, clients and service accounts that are valid for seconds, on PostgreSQL for two replicas, of which one or both are killed: no unnecessary exchange, no expired token in use, and calls wait at most 3 s for a dead process',
  ),
  kill('applies', 'Governance files, applied in sequence: a file is applied completely or not at all'),
  kill('rotations', 'Every key of the broker is rotated in turn: sealed values can be opened, signatures verify'),
  kill('pushes', 'git pushes: what was reported to git exists, and what exists has an audit row'),
  kill(
    'audit-pushes',
    'The audit, pushed to a collector that is slow and sometimes refuses: it receives every row, in order, exactly once by id',
  ),
  kill(
    'notices',
    'Webhooks: each is sent within 2 s of the held call or of the next start; duplicates have the same id, and occur only when the kill was between the response and its commit',
  ),
  kill('migrations', 'The next release, while it starts on a store that it has to migrate: the rows are unchanged'),
  kill(
    'backups',
    '`agent-broker backup` and `restore` themselves, while a broker uses the store: what a killed backup leaves is complete or refused, after a killed restore no call is made without a review, and both can be repeated',
  ),
  kill(
    'master-key',
    'The master key of replicas: both keys are configured, and the process that wraps the data keys with the new one is killed: the next rotation finishes it',
    ['postgres'],
  ),
  kill('replicas', 'One of two replicas, with calls to both: its leases are taken over, and the log continues', [
    'postgres',
  ]),
  fault('read-only', 'PostgreSQL is read-only, as after a failover to a standby', 'postgres'),
  fault('stopped', 'PostgreSQL is shut down for 5 s', 'postgres'),
  fault('killed', 'PostgreSQL and all of its processes are killed with -9, and recover', 'postgres'),
  fault(
    'promoted',
    'PostgreSQL and all of its processes are killed with -9, and its synchronous standby is promoted and takes its address',
    'postgres',
  ),
  fault(
    'paused',
    'PostgreSQL and all of its processes are stopped for 8 s (SIGSTOP): connections stay open',
    'postgres',
  ),
  fault('connections', 'All connections that PostgreSQL accepts are in use by others', 'postgres'),
  fault('postgres-full', 'The file system of PostgreSQL is full', 'postgres', { needsRoot: true }),
  fault('disk-full', 'The file system of the data folder is full', 'sqlite', { needsRoot: true }),
  fault('inodes-full', 'No file can be created on the file system of the data folder', 'sqlite', {
    needsRoot: true,
  }),
  fault(
    'folder-read-only',
    'The kernel sets the file system of the data folder read-only, as it does after an error of the disk (ext4); the broker is stopped, the file system repaired, and a broker started',
    'sqlite',
    { needsRoot: true },
  ),
  fault('slow-disk', 'Each sync to the disk of the data folder takes a tenth of a second longer', 'sqlite'),
  suite(
    'store-away',
    'The network connection to PostgreSQL is interrupted and restored, and a store that cannot be read',
    'operations/store-outage',
    BOTH,
  ),
  suite(
    'readiness',
    'A store that is full, read-only, hangs or is unreachable, and the response of /readyz',
    'operations/readiness',
    BOTH,
  ),
  suite(
    'lost-commits',
    'Connections to PostgreSQL are closed at random, also between a commit and its response',
    'audit/lost-commit',
    ['postgres'],
  ),
  suite('slow-folder', 'The data folder takes 200 ms for each write', 'operations/slow-folder', ['sqlite']),
  suite(
    'clock',
    'The clock is set forward and back, before the start and while serving, on a single broker and on one of two replicas',
    'operations/clock',
    BOTH,
  ),
  suite(
    'dns',
    'Names that resolve to nothing, to private addresses, to different addresses each time, or not in time',
    'egress/connector',
    ['sqlite'],
  ),
  suite(
    'upstreams',
    'Platforms that hang, send slowly, reset, refuse, or send invalid HTTP',
    'calls/actions.502-503',
    BOTH,
  ),
  model(
    'approvals',
    'Calls are held, approved by one person or by two, denied and decided by two owners concurrently, while owners change what the agent may do and the broker restarts',
  ),
  model('budgets', 'Standing approvals and limits, with bursts of calls: never more calls than their number allows'),
  model(
    'children',
    'Children are issued while grants, limits, policies and statuses of their parent change: no child can do what its parent cannot do at that moment',
  ),
  model(
    'consents',
    'People consent, owners confirm and end connections: each call uses the token of its person, or none',
  ),
  model(
    'git-refs',
    'Pushes to a real git server while the grant changes: only refs and changes that the grant allows at that moment',
  ),
  model(
    'grants',
    'Grants are created, changed and revoked, they expire, and rules change: in force immediately, at every entry point',
  ),
  model(
    'look-backs',
    'Look-back conditions, with bursts of calls of an agent, its child and another agent, while rules and time change: refused from the first such call on, until its period has ended',
  ),
  model(
    'limits',
    'Limits of rules, with bursts of calls of an agent, its child and another agent, while rules change: never more calls than the limit allows',
  ),
  input('agent-tokens', 'Agent tokens, modified, and signed with other headers and claims, compared with jose'),
  input(
    'conditions',
    'Conditions in CEL, compared with the result of the library for the same values: they terminate, and never throw',
  ),
  input(
    'endpoints',
    'Endpoints of calls: refused, or sent byte for byte below the base path, however a server parses them',
  ),
  input('event-streams', 'Event streams of MCP servers in chunks, compared with a parser written from the standard'),
  input('graphql', 'GraphQL documents, compared with what graphql-js executes of them'),
  input('json', 'JSON texts, compared with JSON.parse and an independent scanner'),
  input('multipart', 'Multipart bodies, compared with the parser of Node'),
  input('pkt-lines', 'Command lists of pushes, damaged and in chunks: the parser returns exactly what they contain'),
  input('push-reports', 'Reports of pushes, damaged and in chunks: the result does not depend on chunk borders'),
];
