/**
 * Which calls are the same call. While a call is under way, or waits for a person, the identical call is that one again: it
 * is not submitted a second time. Once its answer was handed over, the identical call is a new one, because a model may well
 * mean to say the same thing twice.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Action } from '../client/action.ts';

export type Repeat = {
  /** The Idempotency-Key of the call. */
  key: string;
  /** The reason that the call was first made with: it is part of the request that the key stands for. */
  reason?: string | undefined;
  /** Set once the call is held. */
  approvalId?: string | undefined;
};

/** A call that is about to be submitted. */
export type Begun = Repeat & {
  /** Nobody has begun it before: nothing can be on its way under its key. */
  isNew: boolean;
  /** Another one each time that the call is begun. */
  turn: number;
};

type Awaitable<T> = T | Promise<T>;

/**
 * Where calls without an answer are remembered. `hash`: of the call, by hashOf. `key`: which of the calls with this hash is
 * meant, because whoever comes late must not touch the next one.
 */
export type Repeats = {
  /**
   * The call that is under way with this hash; a new one, with a new key and this reason, when there is none. Of several
   * who begin at once one makes it new. It is remembered for as long as the broker keeps a key that is used now.
   */
  begin(hash: string, reason: string | undefined): Awaitable<Begun>;
  /** The call that is under way with this hash, if there is one. */
  find(hash: string): Awaitable<Repeat | undefined>;
  /** It waits for a person now. */
  held(hash: string, key: string, approvalId: string): Awaitable<void>;
  /** Its answer was handed over. */
  end(hash: string, key: string): Awaitable<void>;
  /** The same, by the approval that it waited for. */
  endApproval(approvalId: string): Awaitable<void>;
  /** Nothing came of it: forgotten, unless somebody has begun it again since. */
  drop(hash: string, begun: Begun): Awaitable<void>;
};

/** Everything that makes a call what it is. The reason is left out: models word it anew each time. */
export function hashOf({ reason: _, ...action }: Action): string {
  return createHash('sha256').update(sorted(action)).digest('hex');
}

/** JSON with the members of every object in order. */
function sorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${sorted(member)}`)
    .join(',')}}`;
}

export const newRepeat = (reason: string | undefined): Repeat => ({ key: `mcp-${randomUUID()}`, reason });

export type RepeatsInMemory = Repeats & {
  /** Takes over what somebody else who remembers has begun. */
  note(hash: string, begun: Begun): void;
};

/** Remembers for as long as the process lives. */
export function repeatsInMemory(): RepeatsInMemory {
  const known = new Map<string, Repeat & { turn: number }>();
  const endWhere = (hash: string, isIt: (repeat: Repeat & { turn: number }) => boolean): void => {
    const repeat = known.get(hash);
    if (repeat && isIt(repeat)) known.delete(hash);
  };
  return {
    begin: (hash, reason) => {
      const earlier = known.get(hash);
      const repeat = earlier ? { ...earlier, turn: earlier.turn + 1 } : { ...newRepeat(reason), turn: 0 };
      known.set(hash, repeat);
      return { ...repeat, isNew: earlier === undefined };
    },
    find: (hash) => known.get(hash),
    held: (hash, key, approvalId) => {
      const repeat = known.get(hash);
      if (repeat?.key === key) known.set(hash, { ...repeat, approvalId });
    },
    end: (hash, key) => endWhere(hash, (repeat) => repeat.key === key),
    endApproval: (approvalId) => {
      for (const hash of known.keys()) endWhere(hash, (repeat) => repeat.approvalId === approvalId);
    },
    drop: (hash, { key, turn }) => endWhere(hash, (repeat) => repeat.key === key && repeat.turn === turn),
    note: (hash, { isNew: _, ...repeat }) => {
      known.set(hash, repeat);
    },
  };
}
