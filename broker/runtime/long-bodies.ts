/**
 * Parses long request bodies in slices, one at a time per agent family (an agent and its children), with pauses. So an agent that sends
 * worst-case JSON as fast as its rate limit permits takes only a share of the main thread. Bodies of many megabytes, of owners, are processed one at a
 * time per organisation, so that the owners of one organisation cannot fill the memory of the process.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { shareOf } from './memory-share.ts';
import { FairSlices, pacer } from './pace.ts';
import { makeSemaphore, makeSharedSemaphore, type Semaphore } from './semaphore.ts';
import { type Holder, SharedRoom } from './shared-limit.ts';
import { takenWithin } from './waits.ts';

/** In bytes. Parsing this much in one piece takes two milliseconds at most; an agent may send 16 such bodies in one turn of the event loop. */
export const LONG_BODY = 16 * 1024;
/** Bodies of a family that are read from the network concurrently. */
const MAX_READING = 4;
/**
 * The family's next body waits this many times as long as the last one took to parse. The rest of a call's work on a body takes about as
 * long as parsing.
 */
const PAUSE_TIMES = 4;
const MAX_PAUSE_MS = 2_000;
const MIB = 1024 * 1024;
/** Bytes of bodies that are being read and parsed. Parsed, they take several times as much memory. */
const READ_BYTES = shareOf({ all: 64 * MIB, reserve: 16 * MIB, little: 16 * MIB });
/** Bodies of many megabytes that are processed concurrently, each of another organisation. */
const MAX_LARGEST_BODIES = 2;
/** Well below the time in which a request has to be received completely. */
const TURN_MS = 30_000;
/** The shortest timer. */
const SHORTEST_PAUSE_MS = 1;

/** The memory of a parsed body, which may take twenty times as much as its text; the lease of a call. */
export type Room = {
  /** Takes room; false when there is none. It does not wait: the other bodies of the family would wait as well. */
  takeRoom(bytes: number): boolean;
  /** Takes room that a short body needs, although there may be none. */
  count(bytes: number): void;
};

/** Why a call is refused when there is no room. */
export const NO_ROOM =
  'Too many bytes of the calls of this agent and its children, or of all agents, are in memory. Try again.';

/** Work in slices: it awaits `rest` between its pieces, and `takeRoom` before it builds a value of so many bytes; false when there is no room. */
type Work<Value> = (rest: () => Promise<void>, takeRoom: Room['takeRoom']) => Promise<Value>;

export type Parsing = Pick<Room, 'count'> & { inTurn<Value>(work: Work<Value>): Promise<Value> };

const UNLIMITED_ROOM: Room = { takeRoom: () => true, count: () => {} };

/** Slices only, without any limits. */
export const UNLIMITED: Parsing = {
  inTurn: (work) => work(pacer(), UNLIMITED_ROOM.takeRoom),
  count: UNLIMITED_ROOM.count,
};

export type LongBodies = {
  /**
   * Reads a body of at most `bytes`, 16 MiB or less, when fewer than four others of the family are being read, and there is room for it in memory, of
   * which other organisations have a reserve.
   */
  read<Value>(holder: Holder, bytes: number, work: () => Promise<Value>): Promise<Value>;
  /** Parses bodies of the family one after another, in slices, of which all families share the main thread. `room`: unlimited by default. */
  parsing(holder: Holder, room?: Room): Parsing;
  /**
   * Waits until a body of many megabytes may be read and processed: one of an organisation at a time, and two in all. Resolves to the function that
   * ends that; undefined when it took too long.
   */
  turn(organisation: string): Promise<(() => void) | undefined>;
};

type Family = { reading: Semaphore; parsing: Semaphore; users: number };

export function makeLongBodies(): LongBodies {
  const families = new Map<string, Family>();
  const room = new SharedRoom(READ_BYTES);
  const slices = new FairSlices();
  const oneOfEach = makeSharedSemaphore(MAX_LARGEST_BODIES, 1);
  const enter = (name: string): Family => {
    const family = families.get(name) ?? { reading: makeSemaphore(MAX_READING), parsing: makeSemaphore(1), users: 0 };
    families.set(name, family);
    family.users++;
    return family;
  };
  const leave = (name: string, family: Family): void => {
    if (--family.users === 0) families.delete(name);
  };
  return {
    read: async ({ family: name, organisation }, bytes, work) => {
      const family = enter(name);
      try {
        return await family.reading(async () => {
          const end = await room.take(organisation, bytes);
          return await work().finally(end);
        });
      } finally {
        leave(name, family);
      }
    },
    parsing: ({ family: name, organisation }, room = UNLIMITED_ROOM) => ({
      count: (bytes) => room.count(bytes),
      inTurn: (work) =>
        new Promise((resolve, reject) => {
          const family = enter(name);
          void family
            .parsing(async () => {
              const { rest, spentMs } = timed(slices.pacer(organisation));
              try {
                await rest();
                resolve(await work(rest, (bytes) => room.takeRoom(bytes)));
              } catch (error) {
                reject(error);
              }
              const pause = spentMs() * PAUSE_TIMES;
              if (pause >= SHORTEST_PAUSE_MS) await wait(Math.min(pause, MAX_PAUSE_MS), undefined, { ref: false });
            })
            .finally(() => leave(name, family));
        }),
    }),
    turn: async (organisation) => {
      const taken = new Promise<() => void>((take) => {
        void oneOfEach(organisation, () => new Promise<void>((end) => take(end)));
      });
      return await takenWithin(taken, TURN_MS);
    },
  };
}

/** Measures the time that work spends between its pauses, in milliseconds. */
function timed(pause: () => Promise<void>) {
  let spent = 0;
  let since = performance.now();
  return {
    rest: async () => {
      spent += performance.now() - since;
      await pause();
      since = performance.now();
    },
    spentMs: () => spent + performance.now() - since,
  };
}
