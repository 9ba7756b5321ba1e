/**
 * Limits of one agent family (an agent with its children), and of all families together, in this process (docs/agents.md,
 * `too_many_calls`): concurrent calls to platforms, and bytes of answers in memory. Over the call limit a call is refused before the
 * platform is contacted; over the byte limit an answer in flight waits, with back-pressure on the platform. The leases are also the list
 * of calls in flight, which can be stopped.
 */
import type { Access, AccessEnded, LentCredential } from '../policy/access-ended.ts';

const MIB = 1024 * 1024;

/** `calls`: concurrent calls; `bytes`: bytes of answers that are read but not yet written to the client. */
export type BudgetShare = { calls: number; bytes: number };
export type BudgetLimits = { family: BudgetShare; all: BudgetShare };

export const BUDGET: BudgetLimits = {
  family: { calls: 16, bytes: 32 * MIB },
  all: { calls: 256, bytes: 128 * MIB },
};

/** Multiplies all limits, for load tests. Factors below one are ignored, because a call needs a slot. */
export function budgetOf(factor: number): BudgetLimits {
  const share = ({ calls, bytes }: BudgetShare) => ({
    calls: calls * Math.max(1, factor),
    bytes: bytes * Math.max(1, factor),
  });
  return { family: share(BUDGET.family), all: share(BUDGET.all) };
}

/** Above this number of families, idle ones are dropped from the map. */
const KEPT_FAMILIES = 1_024;

type Family = BudgetShare & { readonly name: string; readonly leases: CallLease[] };

/** The budget of a process. */
export class CallBudget {
  readonly #limits: BudgetLimits;
  readonly #all: BudgetShare = { calls: 0, bytes: 0 };
  readonly #families = new Map<string, Family>();
  /** Leases whose answer waits for room, longest waiting first. */
  #waiting: { lease: CallLease; resume: () => void }[] = [];
  #leases = 0;

  constructor(limits: BudgetLimits = BUDGET) {
    this.#limits = limits;
  }

  /** Calls and bytes in use now. */
  get held(): Readonly<BudgetShare> {
    return { ...this.#all };
  }

  /** Creates a lease of the family, which holds nothing until `begin`. */
  lease(family: string): CallLease {
    return new CallLease(this, family, this.#leases++);
  }

  /** Returns the leases of calls that began before this moment (of `performance.now()`), can be stopped, and are not stopped yet. */
  underWay(before: number): CallLease[] {
    return [...this.#families.values()].flatMap(({ leases }) =>
      leases.filter(({ since, allowed, stopped }) => since < before && allowed !== undefined && stopped === undefined),
    );
  }

  /** For `CallLease` only: takes a call slot of the family. Undefined when there are too many calls or bytes. */
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

  /** For `CallLease` only: adds bytes; negative to release them. */
  count(family: Family, bytes: number): void {
    family.bytes += bytes;
    this.#all.bytes += bytes;
    if (bytes < 0) this.#resumeWaiting();
  }

  /** For `CallLease` only: removes a lease and releases its `bytes`. */
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
   * For `CallLease` only. Over the limit only the oldest lease continues, so that one always does; the limit is exceeded by two answers at
   * most, the oldest and the one that took the last room.
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
 * What a call was allowed for, and for whom: `agentId` is `agt_…`, `source` the client's address, `signedWith` the fingerprint of the key
 * that signed its token.
 */
export type Allowed = Access & {
  agentId: string;
  source: string;
  signedWith?: string;
  lent: readonly LentCredential[];
};

/** The share of the budget that one call holds. Each part is released once; repeated releases do nothing. */
export class CallLease {
  readonly order: number;
  /** When the call began, of `performance.now()`. */
  since = 0;
  /** Set for calls that are stopped when their agent loses the access. */
  allowed: Allowed | undefined;
  readonly #budget: CallBudget;
  readonly #name: string;
  /** Set from `begin` until `release`. */
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

  /**
   * Takes a call slot; must precede the request to a platform. False when there are too many calls now. True again for a lease that has
   * begun.
   */
  begin(): boolean {
    if (this.#family === undefined && !this.#isReleased) {
      this.#family = this.#budget.takeCall(this.#name, this);
      this.#isCalling = this.#family !== undefined;
      this.since = performance.now();
    }
    return this.#isCalling;
  }

  /** Releases the call slot. The bytes of the answer stay counted until `release`. */
  endCall(): void {
    if (!this.#isCalling || this.#family === undefined) return;
    this.#isCalling = false;
    this.#budget.giveCallBack(this.#family);
  }

  /** Counts bytes of the answer in memory; negative when they are freed. */
  count(bytes: number): void {
    if (this.#family === undefined) return;
    this.#bytes += bytes;
    this.#budget.count(this.#family, bytes);
  }

  /** Whether more of the answer may be read. */
  get hasRoom(): boolean {
    return this.#family === undefined || this.#budget.hasRoom(this.#family, this);
  }

  /** Calls `resume` once, when more may be read. */
  whenRoom(resume: () => void): void {
    this.#budget.wait(this, resume);
  }

  /** Why the call was stopped; undefined when it was not. */
  get stopped(): AccessEnded | undefined {
    return this.#stopped;
  }

  /** Aborts the requests of the call: nothing more is sent or returned. Only the first reason counts. */
  stop(why: AccessEnded): void {
    if (this.#stopped !== undefined || this.#isReleased) return;
    this.#stopped = why;
    for (const end of this.#ends?.splice(0) ?? []) end();
  }

  /** Calls `end` when the call is stopped. @returns a function that unregisters it */
  whenStopped(end: () => void): () => void {
    this.#ends ??= [];
    const ends = this.#ends;
    ends.push(end);
    return () => {
      const at = ends.indexOf(end);
      if (at >= 0) ends.splice(at, 1);
    };
  }

  /** Releases everything; the lease cannot be used again. */
  release(): void {
    this.endCall();
    this.#isReleased = true;
    const family = this.#family;
    if (family === undefined) return;
    this.#family = undefined;
    this.#budget.forget(family, this, this.#bytes);
  }
}
