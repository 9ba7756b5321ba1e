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

type Awaitable<T> = T | Promise<T>;

/** Where calls without an answer are remembered. `hash`: of the call, by hashOf. */
export type Repeats = {
  /** The call that is under way with this hash; a new one, with a new key and this reason, when there is none. */
  begin(hash: string, reason: string | undefined): Awaitable<Repeat>;
  /** The call that is under way with this hash, if there is one. */
  find(hash: string): Awaitable<Repeat | undefined>;
  /** It waits for a person now. */
  held(hash: string, approvalId: string): Awaitable<void>;
  /** Its answer was handed over. */
  end(hash: string): Awaitable<void>;
  /** The same, by the approval that it waited for. */
  endApproval(approvalId: string): Awaitable<void>;
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

/** Remembers for as long as the process lives. */
export function repeatsInMemory(): Repeats {
  const known = new Map<string, Repeat>();
  return {
    begin: (hash, reason) => {
      const repeat = known.get(hash) ?? newRepeat(reason);
      known.set(hash, repeat);
      return repeat;
    },
    find: (hash) => known.get(hash),
    held: (hash, approvalId) => {
      known.set(hash, { ...(known.get(hash) ?? newRepeat(undefined)), approvalId });
    },
    end: (hash) => {
      known.delete(hash);
    },
    endApproval: (approvalId) => {
      for (const [hash, repeat] of known) if (repeat.approvalId === approvalId) known.delete(hash);
    },
  };
}
