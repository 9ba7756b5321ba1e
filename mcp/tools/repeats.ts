/**
 * Deduplication of retries. While a call is in progress or held, an identical call joins it and is not submitted a second time.
 * Once its result was delivered, an identical call is a new one, because a model may intend to do the same thing twice.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Action } from '../client/action.ts';

export type Repeat = {
  /** The Idempotency-Key of the call. */
  key: string;
  /** The reason of the first attempt, which is part of the request that the broker stores for this key. */
  reason?: string | undefined;
  /** Set once the call is held. */
  approvalId?: string | undefined;
};

/** A call that is about to be submitted. */
export type Begun = Repeat & {
  /** The first attempt: nothing can be in progress with its key. */
  isNew: boolean;
  /** Changes with each attempt. */
  turn: number;
};

type Awaitable<T> = T | Promise<T>;

/**
 * Store of pending calls. `hash`: of the call, by hashOf. `key`: distinguishes successive calls with this hash, so that a late
 * update does not affect the next one. The updates after a call was submitted (`held`, `end`, `endApproval`, `drop`) do not reject:
 * its outcome is worth more, and until they succeed an identical call has the same key, so it is not executed twice.
 */
export type Repeats = {
  /**
   * Returns the pending call with this hash, or a new one with a new key and this reason. One of concurrent callers creates it. It is
   * stored for as long as the broker keeps a key that is used now.
   */
  begin(hash: string, reason: string | undefined): Awaitable<Begun>;
  /** Returns the pending call with this hash, if there is one. */
  find(hash: string): Awaitable<Repeat | undefined>;
  /** Marks the call as held. */
  held(hash: string, key: string, approvalId: string): Awaitable<void>;
  /** Removes the call, whose result was delivered. */
  end(hash: string, key: string): Awaitable<void>;
  /** Removes the call with this approval, whose result was delivered. */
  endApproval(approvalId: string): Awaitable<void>;
  /** Removes a call that was not executed, unless another attempt has begun since. */
  drop(hash: string, begun: Begun): Awaitable<void>;
};

/**
 * Hash of the call's content, without the reason, which models word differently each time. `person`: the caller's PersonKey, used in
 * place of the caller, whose assertion differs each time.
 */
export function hashOf({ reason: _, caller: _caller, ...action }: Action, person: string | undefined): string {
  return createHash('sha256')
    .update(sorted(person === undefined ? action : { ...action, person }))
    .digest('hex');
}

/** Serialises to JSON with sorted members. */
function sorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${sorted(member)}`)
    .join(',')}}`;
}

export const newRepeat = (reason: string | undefined): Repeat => ({ key: `mcp-${uuidv7()}`, reason });

/** UUID version 7 (RFC 9562 section 5.7): by its time, a broker that was restored from a backup detects that the call is new. */
function uuidv7(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

export type RepeatsInMemory = Repeats & {
  /** Copies an entry from another store. */
  note(hash: string, begun: Begun): void;
};

/** In memory, for the lifetime of the process. */
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
