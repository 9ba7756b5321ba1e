/** Reads the body of a git request as far as it has to be judged, limited in received and decompressed bytes (specification, Limits). */
import { pipeline, Readable } from 'node:stream';
import zlib from 'node:zlib';
import type { GitBody, GitStep } from '../calls/git-request.ts';
import type { GitRef } from '../policy/facts.ts';
import type { Holder } from '../runtime/shared-limit.ts';
import { CommandListReader, type CommandListState, type Push } from './command-list.ts';
import { type KeptBodies, type KeptBody, MAX_IN_MEMORY } from './kept-bodies.ts';

/** A request body. `length`: if declared. */
export type IncomingBody = {
  sender: Holder;
  service: 'git-upload-pack' | 'git-receive-pack';
  pieces: AsyncIterable<Buffer>;
  length: number | undefined;
  isGzip: boolean;
};

/** `code`: of the answer; `detail`: what is wrong and what to do. `push`: the commands of a push that is too large. */
export type BodyRefusal = {
  ok: false;
  code: 'invalid_request' | 'git_request_too_large' | 'request_cut' | 'too_many_calls';
  detail: string;
  push?: Push;
};

/** `push`: the commands of a push. `release`: must be called when the body is no longer needed. */
export type ReadBody =
  | {
      ok: true;
      step: Exclude<GitStep, 'advertised'>;
      refs: readonly GitRef[];
      push?: Push;
      body: GitBody;
      release(): Promise<void>;
    }
  | BodyRefusal;

const PROBE = '0000';

/** Returns why a body of this declared length is refused unread; undefined when it may be read. `limit`: GIT_MAX_REQUEST_BYTES. */
export function lengthRefusal(length: number | undefined, limit: number): BodyRefusal | undefined {
  return length !== undefined && length > limit ? tooLarge(limit) : undefined;
}

/**
 * Reads what has to be judged. A long body of known length is then streamed; any other is buffered completely first, so that nothing is
 * sent of a body that exceeds the limit. Rethrows errors of `pieces`: the sender disconnected, or stalls.
 */
export async function readBody(incoming: IncomingBody, kept: KeptBodies, limit: number): Promise<ReadBody> {
  const { length, isGzip } = incoming;
  if (length !== undefined && length > MAX_IN_MEMORY && !isGzip) return await readPassing(incoming, length);
  const seen = { push: undefined as Push | undefined };
  try {
    const plain = isGzip ? inflated(incoming.pieces, limit) : incoming.pieces;
    const pieces = incoming.service === 'git-receive-pack' ? watchingCommands(plain, seen) : plain;
    const found = await kept.keep(pieces, limit, incoming.sender);
    if (found.kind === 'too_large') return { ...tooLarge(limit), ...(seen.push && { push: seen.push }) };
    if (found.kind === 'no_room') return NO_ROOM;
    return await readKept(incoming.service, found.body);
  } catch (error) {
    if (error instanceof BodyFault)
      return error.limit === undefined
        ? malformed(error.message)
        : { ...tooLarge(error.limit), ...(seen.push && { push: seen.push }) };
    throw error;
  }
}

/**
 * Reads the commands of a push that is too large, so that its refusal can be reported for each ref; undefined when they cannot be read.
 * Nothing after them is read. Rethrows errors of `pieces`.
 */
export async function commandsOf(pieces: AsyncIterable<Buffer>): Promise<Push | undefined> {
  const head = await readHead(first(pieces));
  return head.kind === 'done' ? head.push : undefined;
}

const MAX_PIECES = 8;

/** All but very long command lists fit into these pieces, and a slow sender is not waited for. */
async function* first(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = MAX_PIECES;
  for await (const piece of pieces) {
    yield piece;
    if (--left === 0) return;
  }
}

/** Passes the pieces through; `seen.push` is set once the commands are complete. */
async function* watchingCommands(
  pieces: AsyncIterable<Buffer>,
  seen: { push: Push | undefined },
): AsyncGenerator<Buffer> {
  const reader = new CommandListReader();
  let state: CommandListState = { kind: 'more' };
  for await (const piece of pieces) {
    if (state.kind === 'more') state = reader.push(piece);
    if (state.kind === 'done') seen.push = state.push;
    yield piece;
  }
}

async function readKept(service: IncomingBody['service'], body: KeptBody): Promise<ReadBody> {
  const accepted = { ok: true as const, refs: [], body, release: () => body.release() };
  const refused = async (why: string) => {
    await body.release();
    return malformed(why);
  };
  if (body.bytes === PROBE.length && String(body.open()) === PROBE) return { ...accepted, step: 'probe' };
  if (service === 'git-upload-pack') return { ...accepted, step: 'fetched' };
  const opened = body.open();
  const head = await readHead(Buffer.isBuffer(opened) ? [opened] : opened);
  if (head.kind !== 'done') return await refused(whyOf(head));
  const problem = packProblem(head, body.bytes);
  return problem === undefined
    ? { ...accepted, refs: head.push.refs, push: head.push, step: 'pushed' }
    : await refused(problem);
}

/** Reads the command list of a push; the rest is streamed. A body that is not sent on is closed, so that its sender can read the answer. */
async function readPassing({ service, pieces }: IncomingBody, length: number): Promise<ReadBody> {
  const iterator = pieces[Symbol.asyncIterator]();
  let isTaken = false;
  const passing = (first: Uint8Array | undefined): Pick<Extract<ReadBody, { ok: true }>, 'body' | 'release'> => ({
    body: {
      bytes: length,
      open: () => {
        if (isTaken) return undefined;
        isTaken = true;
        return rest(first, iterator);
      },
    },
    // The reader closes a body that was opened, and may be waiting for more of it now.
    release: async () => void (!isTaken && (await iterator.return?.())),
  });
  const refused = async (why: string) => {
    await iterator.return?.();
    return malformed(why);
  };
  if (service === 'git-upload-pack') return { ok: true, step: 'fetched', refs: [], ...passing(undefined) };
  const head = await readHead({ [Symbol.asyncIterator]: () => ({ next: () => iterator.next() }) });
  if (head.kind !== 'done') return await refused(whyOf(head));
  const problem = packProblem(head, length);
  if (problem !== undefined) return await refused(problem);
  const { push } = head;
  return { ok: true, step: 'pushed', refs: push.refs, push, ...passing(head.bytes) };
}

type Head = Exclude<CommandListState, { kind: 'more' }>;

async function readHead(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<Head> {
  const reader = new CommandListReader();
  for await (const piece of pieces) {
    const state = reader.push(piece);
    if (state.kind !== 'more') return state;
  }
  return reader.end() as Head;
}

const whyOf = (head: Exclude<Head, { kind: 'done' }>): string => `The push is malformed: ${head.why}.`;

/** `bytes`: length of the whole body. */
function packProblem({ push, packAt }: Extract<Head, { kind: 'done' }>, bytes: number): string | undefined {
  if (push.refs.length === 0) return 'The push is malformed: it names no ref.';
  // A push of objects that the host already has still contains an empty pack.
  if (push.hasPack && packAt === bytes) return 'The push is malformed: it ends before its pack.';
  return !push.hasPack && packAt < bytes ? 'The push is malformed: it only deletes, and brings a pack.' : undefined;
}

async function* rest(first: Uint8Array | undefined, iterator: AsyncIterator<Buffer>): AsyncGenerator<Uint8Array> {
  try {
    if (first) yield first;
    for (;;) {
      const { done, value } = await iterator.next();
      if (done) return;
      yield value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** A problem with a body. `limit`: the limit in bytes that it exceeds. */
class BodyFault extends Error {
  readonly limit: number | undefined;
  constructor(message: string, limit?: number) {
    super(message);
    this.limit = limit;
  }
}

/** Decompresses gzip. Received bytes are counted here, decompressed ones by the consumer. */
async function* inflated(pieces: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Buffer> {
  async function* counted() {
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > limit) throw new BodyFault('too large', limit);
      yield piece;
    }
  }
  const gunzip = zlib.createGunzip();
  let failure: Error | null | undefined;
  pipeline(Readable.from(counted()), gunzip, (error) => {
    failure = error;
  });
  try {
    for await (const piece of gunzip) yield piece as Buffer;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code.startsWith('Z_'))
      throw new BodyFault('The body is not what its Content-Encoding says: send it plain or gzip.');
    throw failure ?? error;
  }
}

const malformed = (detail: string): BodyRefusal => ({ ok: false, code: 'invalid_request', detail });

const tooLarge = (limit: number): BodyRefusal => ({
  ok: false,
  code: 'git_request_too_large',
  detail: `The request is larger than ${formatSize(limit)}, which GIT_MAX_REQUEST_BYTES of the broker allows. Nothing was sent: push in smaller steps, or ask its operator.`,
});

const NO_ROOM: BodyRefusal = {
  ok: false,
  code: 'too_many_calls',
  detail:
    'There is no room for another large request just now. Nothing was sent: try again, and ask the operator of the broker whether its disk is full where that does not help.',
};

function formatSize(bytes: number): string {
  const [mib, gib] = [bytes / 1024 ** 2, bytes / 1024 ** 3];
  if (Number.isInteger(gib)) return `${gib} GiB`;
  return Number.isInteger(mib) ? `${mib} MiB` : `${bytes} bytes`;
}
