/**
 * What the calls of one agent family (an agent with its children), and of all families together, may take of this process
 * (decisions, Streams and raw doors): calls to platforms at once, and bytes of answers in memory. Over it a call is refused
 * before a platform is asked; an answer that is on its way waits, and the platform with it. What holds something of it is what is under
 * way, and can be stopped.
 */
import type { Access, AccessEnded, LentCredential } from '../policy/access-ended.ts';

const MIB = 1024 * 1024;

/** `calls` at once, `bytes` of answers that are read or not yet written to whoever asked. */
export type BudgetShare = { calls: number; bytes: number };
export type BudgetLimits = { family: BudgetShare; all: BudgetShare };

export const BUDGET: BudgetLimits = {
  family: { calls: 16, bytes: 32 * MIB },
  all: { calls: 256, bytes: 128 * MIB },
};

/** `factor`: that of all limits, for load tests. Below one it is no factor of these: a call needs a place. */
export function budgetOf(factor: number): BudgetLimits {
  const share = ({ calls, bytes }: BudgetShare) => ({
    calls: calls * Math.max(1, factor),
    bytes: bytes * Math.max(1, factor),
  });
  return { family: share(BUDGET.family), all: share(BUDGET.all) };
}

/** From so many families on, those that hold nothing are forgotten. */
const KEPT_FAMILIES = 1_024;

type Family = BudgetShare & { readonly name: string; readonly leases: CallLease[] };

/** The budget of a process. */
export class CallBudget {
  readonly #limits: BudgetLimits;
  readonly #all: BudgetShare = { calls: 0, bytes: 0 };
  readonly #families = new Map<string, Family>();
  /** Leases whose answer waits for room, the longest waiting first. */
  #waiting: { lease: CallLease; resume: () => void }[] = [];
  #leases = 0;

  constructor(limits: BudgetLimits = BUDGET) {
    this.#limits = limits;
  }

  /** Calls and bytes held now. */
  get held(): Readonly<BudgetShare> {
    return { ...this.#all };
  }

  /** A lease of the family, which holds nothing yet. */
  lease(family: string): CallLease {
    return new CallLease(this, family, this.#leases++);
  }

  /** The leases of calls that began before this moment (of `performance.now()`), may be stopped, and were not. */
  underWay(before: number): CallLease[] {
    return [...this.#families.values()].flatMap(({ leases }) =>
      leases.filter(({ since, allowed, stopped }) => since < before && allowed !== undefined && stopped === undefined),
    );
  }

  /** For `CallLease` only: takes a call of the family. Undefined: there are too many, or too many bytes. */
  takeCall(name: string, lease: CallLease): Family | undefined {
    const family = this.#families.get(name) ?? { name, calls: 0, bytes: 0, leases: [] };
    const { family: share, all } = this.#limits;
    if (family.calls >= share.calls || family.bytes >= share.bytes) return undefined;
    if (this.#all.calls >= all.calls || this.#all.bytes >= all.bytes) return undefined;
    this.#families.set(name, family);
    family.calls++;
    this.#all.calls++;
    family.leases.push(lease);
    return family;
  }

  /** For `CallLease` only. */
  giveCallBack(family: Family): void {
    family.calls--;
    this.#all.calls--;
  }

  /** For `CallLease` only: bytes more, or less. */
  count(family: Family, bytes: number): void {
    family.bytes += bytes;
    this.#all.bytes += bytes;
    if (bytes < 0) this.#resumeWaiting();
  }

  /** For `CallLease` only: it holds nothing any more, nor what `bytes` it held. */
  forget(family: Family, lease: CallLease, bytes: number): void {
    family.bytes -= bytes;
    this.#all.bytes -= bytes;
    family.leases.splice(family.leases.indexOf(lease), 1);
    this.#waiting = this.#waiting.filter((waiting) => waiting.lease !== lease);
    if (family.leases.length === 0 && this.#families.size > KEPT_FAMILIES) this.#families.delete(family.name);
    this.#resumeWaiting();
  }

  /** For `CallLease` only. */
  wait(lease: CallLease, resume: () => void): void {
    this.#waiting.push({ lease, resume });
  }

  /**
   * For `CallLease` only. Over the limit the oldest lease goes on alone: so one always does, and the limit is exceeded by two
   * answers at most, the oldest and the one that took the last room.
   */
  hasRoom(family: Family, lease: CallLease): boolean {
    const { family: share, all } = this.#limits;
    if (family.bytes >= share.bytes && oldest(family.leases) !== lease) return false;
    return (
      this.#all.bytes < all.bytes || oldest([...this.#families.values()].flatMap(({ leases }) => leases)) === lease
    );
  }

  #resumeWaiting(): void {
    if (this.#waiting.length === 0) return;
    const resumed = this.#waiting.filter(({ lease }) => lease.hasRoom);
    this.#waiting = this.#waiting.filter((waiting) => !resumed.includes(waiting));
    for (const { resume } of resumed) resume();
  }
}

const oldest = (leases: readonly CallLease[]): CallLease | undefined =>
  leases.reduce<CallLease | undefined>(
    (first, lease) => (first === undefined || lease.order < first.order ? lease : first),
    undefined,
  );

/**
 * What a call was allowed for, and whose it is: `agentId` as `agt_…`, `source` the address that it was asked from, `signedWith` the fingerprint of
 * the key that it was signed with.
 */
export type Allowed = Access & {
  agentId: string;
  source: string;
  signedWith?: string;
  lent: readonly LentCredential[];
};

/** What one call holds of the budget. Each of its parts is given back once, however often that is asked. */
export class CallLease {
  readonly order: number;
  /** When it began, of `performance.now()`. */
  since = 0;
  /** Of a call that is stopped once its agent lost the access. */
  allowed: Allowed | undefined;
  readonly #budget: CallBudget;
  readonly #name: string;
  /** Once it has begun, and until it is released. */
  #family: Family | undefined;
  #isCalling = false;
  #isReleased = false;
  #bytes = 0;
  #stopped: AccessEnded | undefined;
  #ends: (() => void)[] | undefined;

  /** Use `CallBudget.lease`. */
  constructor(budget: CallBudget, name: string, order: number) {
    this.#budget = budget;
    this.#name = name;
    this.order = order;
  }

  /** To be asked before a platform is. False: this call is one too many just now. True again for a lease that has begun. */
  begin(): boolean {
    if (this.#family === undefined && !this.#isReleased) {
      this.#family = this.#budget.takeCall(this.#name, this);
      this.#isCalling = this.#family !== undefined;
      this.since = performance.now();
    }
    return this.#isCalling;
  }

  /** No platform is asked any more. The bytes of the answer are held until `release`. */
  endCall(): void {
    if (!this.#isCalling || this.#family === undefined) return;
    this.#isCalling = false;
    this.#budget.giveCallBack(this.#family);
  }

  /** Counts bytes of the answer that are now in memory; less than none: that are gone. */
  count(bytes: number): void {
    if (this.#family === undefined) return;
    this.#bytes += bytes;
    this.#budget.count(this.#family, bytes);
  }

  /** Whether more of the answer may be read. */
  get hasRoom(): boolean {
    return this.#family === undefined || this.#budget.hasRoom(this.#family, this);
  }

  /** Calls `resume` once when more may be read. */
  whenRoom(resume: () => void): void {
    this.#budget.wait(this, resume);
  }

  /** Why the call may not go on; undefined: it may. */
  get stopped(): AccessEnded | undefined {
    return this.#stopped;
  }

  /** Ends what is on its way for the call: nothing more of it is sent, or handed out. Only the first reason counts. */
  stop(why: AccessEnded): void {
    if (this.#stopped !== undefined || this.#isReleased) return;
    this.#stopped = why;
    for (const end of this.#ends?.splice(0) ?? []) end();
  }

  /** Calls `end` when the call is stopped. @returns forgets it */
  whenStopped(end: () => void): () => void {
    this.#ends ??= [];
    const ends = this.#ends;
    ends.push(end);
    return () => {
      const at = ends.indexOf(end);
      if (at >= 0) ends.splice(at, 1);
    };
  }

  /** Gives back all that it holds; it cannot be used again. */
  release(): void {
    this.endCall();
    this.#isReleased = true;
    const family = this.#family;
    if (family === undefined) return;
    this.#family = undefined;
    this.#budget.forget(family, this, this.#bytes);
  }
}
