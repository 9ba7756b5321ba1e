/**
 * Long request bodies: parsed in slices, and of each family of agents (an agent and its children) one at a time, with pauses. So one
 * that sends the worst JSON as fast as its rate limit permits takes a share of the main thread, and not all of it.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { pacer } from './pace.ts';
import { makePlaces, type Places } from './places.ts';

/** In bytes. Parsed in one piece, this takes some milliseconds at most. */
export const LONG_BODY = 64 * 1024;
/** Bodies of a family that are read from the network at the same time. */
const READ_AT_ONCE = 4;
/** After a body was parsed, the family's next one waits for this many times as long. What else a call does with a body takes about as long as parsing. */
const PAUSE_TIMES = 4;
const LONGEST_PAUSE_MS = 2_000;
/** As short as a timer can be. */
const SHORTEST_PAUSE_MS = 1;

/** Does work in slices: `rest` is awaited between its pieces. */
export type Parsing = <Value>(work: (rest: () => Promise<void>) => Promise<Value>) => Promise<Value>;

/** In slices alone, for whom nobody else waits. */
export const inTurn: Parsing = (work) => work(pacer());

export type LongBodies = {
  /** Reads a body when fewer than four others of the family are being read. */
  read<Value>(family: string, work: () => Promise<Value>): Promise<Value>;
  /** Parses bodies of the family, one after the other. */
  parsing(family: string): Parsing;
};

type Family = { reading: Places; parsing: Places; users: number };

export function makeLongBodies(): LongBodies {
  const families = new Map<string, Family>();
  const enter = (name: string): Family => {
    const family = families.get(name) ?? { reading: makePlaces(READ_AT_ONCE), parsing: makePlaces(1), users: 0 };
    families.set(name, family);
    family.users++;
    return family;
  };
  const leave = (name: string, family: Family): void => {
    if (--family.users === 0) families.delete(name);
  };
  return {
    read: async (name, work) => {
      const family = enter(name);
      try {
        return await family.reading(work);
      } finally {
        leave(name, family);
      }
    },
    parsing: (name) => (work) =>
      new Promise((resolve, reject) => {
        const family = enter(name);
        void family
          .parsing(async () => {
            const { rest, spentMs } = timedPacer();
            try {
              resolve(await work(rest));
            } catch (error) {
              reject(error);
            }
            const pause = spentMs() * PAUSE_TIMES;
            if (pause >= SHORTEST_PAUSE_MS) await wait(Math.min(pause, LONGEST_PAUSE_MS), undefined, { ref: false });
          })
          .finally(() => leave(name, family));
      }),
  };
}

/** A pacer that measures how long the pieces between its rests take, in milliseconds. */
function timedPacer(): { rest: () => Promise<void>; spentMs: () => number } {
  const rest = pacer();
  let spent = 0;
  let since = performance.now();
  return {
    rest: async () => {
      spent += performance.now() - since;
      await rest();
      since = performance.now();
    },
    spentMs: () => spent + performance.now() - since,
  };
}
