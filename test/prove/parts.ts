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
  kill('streams', 'Streamed answers and bodies on the raw door: what was cut off is an error for its client'),
  kill('approvals', 'Calls are held, approved, denied and made'),
  kill(
    'look-backs',
    'Reads that a rule looks back at, and changes after them: refused from the moment at which the platform has the read, also of reads that were cut off',
  ),
  kill(
    'refreshes',
    'Tokens that last two seconds, at a server that rotates refresh tokens: the connection works again, or says `platform_reauth_needed`',
  ),
  kill(
    'exchanges',
    'Tokens of Apps, clients and service accounts that last seconds, on PostgreSQL for two replicas, of which one or both are killed: no exchange more than needed, no token after its end, and calls wait for a dead process for 3 s at most',
  ),
  kill('applies', 'Governance files, one after the other: a file is in force as a whole'),
  kill('rotations', 'Every key of the broker is rotated in turn: what was sealed opens, what was signed verifies'),
  kill('pushes', 'git pushes: what git was told of is there, and what is there is on record'),
  kill(
    'audit-pushes',
    'The audit, pushed to a collector that is slow and refuses now and then: it has every row, in order, exactly once by its id',
  ),
  kill(
    'notices',
    'Webhooks: each is sent, within 2 s of the held call or of the next start; copies have one id, and are there only when a kill fell between answer and mark',
  ),
  kill(
    'migrations',
    'The next release, while it starts on a store that it has to migrate: the rows are what they were',
  ),
  kill(
    'backups',
    '`agent-broker backup` and `restore` themselves, while a broker works on the store: what a killed backup leaves is whole or refused, after a killed restore nothing is called without a review, and both can be done again',
  ),
  kill(
    'master-key',
    'The master key of replicas: the operator gives both keys, and the process that wraps again is killed: the next rotation finishes it',
    ['postgres'],
  ),
  kill('replicas', 'One of two replicas, with calls to both: its leases are taken over, and the log goes on', [
    'postgres',
  ]),
  fault('read-only', 'PostgreSQL writes nothing any more, as after a failover to a standby', 'postgres'),
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
  fault('connections', 'Every connection that PostgreSQL takes is taken by others', 'postgres'),
  fault('postgres-full', 'The file system of PostgreSQL is full', 'postgres', { needsRoot: true }),
  fault('disk-full', 'The file system of the data folder is full', 'sqlite', { needsRoot: true }),
  fault('inodes-full', 'No file can be made any more on the file system of the data folder', 'sqlite', {
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
    'The wire to PostgreSQL is cut and mended, and a store that cannot be read',
    'operations/store-outage',
    BOTH,
  ),
  suite(
    'readiness',
    'A store that is full, read-only, hangs or is away, and what /readyz says',
    'operations/readiness',
    BOTH,
  ),
  suite(
    'lost-commits',
    'Connections to PostgreSQL end at random, also between a commit and its answer',
    'audit/lost-commit',
    ['postgres'],
  ),
  suite('slow-folder', 'The data folder takes 200 ms for each write', 'operations/slow-folder', ['sqlite']),
  suite(
    'clock',
    'The clock is set forward and back, before the start and while it serves, on one and on one of two replicas',
    'operations/clock',
    BOTH,
  ),
  suite(
    'dns',
    'Names that resolve to nothing, to private addresses, to others each time, or not in time',
    'egress/connector',
    ['sqlite'],
  ),
  suite(
    'upstreams',
    'Platforms that hang, trickle, reset, refuse or answer what is no HTTP',
    'calls/actions.502-503',
    BOTH,
  ),
  model(
    'approvals',
    'Calls are held, approved, denied and decided by two owners concurrently, while owners change what the agent may do and the broker restarts',
  ),
  model('budgets', 'Standing approvals and limits, with bursts of calls: never more than were counted out'),
  model(
    'children',
    'Children are issued while grants, limits, policies and statuses of their parent change: no child does what its parent cannot do then',
  ),
  model('consents', 'People consent, owners confirm and end: each call has the own token of its person, or none'),
  model('git-refs', 'Pushes to a real git server while the grant changes: only refs and changes that it allows then'),
  model(
    'grants',
    'Grants are given, changed, taken away and end by time, and rules change: in force immediately, at every entry point',
  ),
  model(
    'look-backs',
    'Rules that look back, with bursts of calls of an agent, its child and another one, while rules and time change: refused from the first such call on, until its time is over',
  ),
  model(
    'limits',
    'Limits of rules, with bursts of calls of an agent, its child and another one, while rules change: never more than there is room for',
  ),
  input('agent-tokens', 'Agent tokens, changed, and signed with other headers and claims, beside jose'),
  input('conditions', 'Conditions in CEL, beside what its library says of the same values: they end, and never throw'),
  input('endpoints', 'Endpoints of calls: refused, or sent byte for byte below the base path, in whatever reading'),
  input('event-streams', 'Event streams of MCP servers in pieces, beside a reader written from the standard'),
  input('graphql', 'GraphQL documents, beside what graphql-js executes of them'),
  input('json', 'JSON texts, beside JSON.parse and a scanner of another hand'),
  input('multipart', 'Bodies in parts, beside the reader of Node'),
  input('pkt-lines', 'Beginnings of pushes, damaged and in pieces: what is read is what stands there'),
  input('push-reports', 'Reports of pushes, damaged and in pieces: what is read does not depend on where they are cut'),
];
