/**
 * Limits of one agent family (an agent with its children), and of all families together, in this process, with a reserve for other organisations
 * (docs/agents.md, `too_many_calls`): concurrent calls to platforms, and bytes of their requests and answers in memory. Over the call limit a call is refused before the
 * platform is contacted; over the byte limit an answer in flight waits, with back-pressure on the platform. The leases are also the list
 * of calls in flight, which can be stopped.
 */
import type { Access, AccessEnded, LentCredential } from '../policy/access-ended.ts';
import { type Holder, type Share, SharedUse } from '../runtime/shared-limit.ts';
import { BUDGET, type BudgetLimits, type BudgetShare } from './budget-limits.ts';

/** Above this number of families, idle ones are dropped from the map. */
const KEPT_FAMILIES = 1_024;

type Family = BudgetShare & {
  readonly name: string;
  readonly organisation: { readonly calls: Share; readonly bytes: Share };
  readonly leases: CallLease[];
};

/** The budget of a process. */
export class CallBudget {
  readonly #family: BudgetShare;
  readonly #calls: SharedUse;
  readonly #bytes: SharedUse;
  readonly #families = new Map<string, Family>();
  /** Leases whose answer waits for room, longest waiting first. */
  #waiting: { lease: CallLease; resume: () => void }[] = [];
  #leases = 0;

  constructor({ family, all, reserve }: BudgetLimits = BUDGET) {
    this.#family = family;
    this.#calls = new SharedUse({ all: all.calls, reserve: reserve.calls, little: family.calls });
    this.#bytes = new SharedUse({ all: all.bytes, reserve: reserve.bytes, little: family.bytes });
  }

  /** Calls and bytes in use now. */
  get held(): Readonly<BudgetShare> {
    return { calls: this.#calls.used, bytes: this.#bytes.used };
  }

  /** Creates a lease of the family, which holds nothing until `begin`. `organisation`: the id of the family's organisation. */
  lease(family: string, organisation: string): CallLease {
    return new CallLease(this, { family, organisation }, this.#leases++);
  }

  /** Returns the leases of calls that began before this moment (of `performance.now()`), can be stopped, and are not stopped yet. */
  underWay(before: number): CallLease[] {
    return [...this.#families.values()].flatMap(({ leases }) =>
      leases.filter(({ since, allowed, stopped }) => since < before && allowed !== undefined && stopped === undefined),
    );
  }

  /** For `CallLease` only: takes a call slot of the family. Undefined when there are too many calls or bytes. */
  takeCall({ family: name, organisation }: Holder, lease: CallLease): Family | undefined {
    const family = this.#families.get(name) ?? {
      name,
      organisation: { calls: this.#calls.of(organisation), bytes: this.#bytes.of(organisation) },
      calls: 0,
      bytes: 0,
      leases: [],
    };
    if (family.calls >= this.#family.calls || family.bytes >= this.#family.bytes) return undefined;
    if (!this.#calls.hasRoom(family.organisation.calls, 1) || !this.#bytes.hasRoom(family.organisation.bytes, 1))
      return undefined;
    this.#families.set(name, family);
    this.#countCalls(family, 1);
    family.leases.push(lease);
    return family;
  }

  #countCalls(family: Family, calls: number): void {
    family.calls += calls;
    this.#calls.count(family.organisation.calls, calls);
  }

  #countBytes(family: Family, bytes: number): void {
    family.bytes += bytes;
    this.#bytes.count(family.organisation.bytes, bytes);
  }

  /** For `CallLease` only. */
  giveCallBack(family: Family): void {
    this.#countCalls(family, -1);
  }

  /** For `CallLease` only: adds bytes; negative to release them. */
  count(family: Family, bytes: number): void {
    this.#countBytes(family, bytes);
    if (bytes < 0) this.#resumeWaiting();
  }

  /** For `CallLease` only: removes a lease and releases its `bytes`. */
  forget(family: Family, lease: CallLease, bytes: number): void {
    this.#countBytes(family, -bytes);
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
    if (family.bytes >= this.#family.bytes && oldest(family.leases) !== lease) return false;
    return (
      this.#bytes.hasRoom(family.organisation.bytes, 1) ||
      oldest([...this.#families.values()].flatMap(({ leases }) => leases)) === lease
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
  readonly #holder: Holder;
  /** Set from `begin` until `release`. */
  #family: Family | undefined;
  #isCalling = false;
  #isReleased = false;
  #bytes = 0;
  #body = 0;
  #stopped: AccessEnded | undefined;
  #ends: (() => void)[] | undefined;

  /** Use `CallBudget.lease`. */
  constructor(budget: CallBudget, holder: Holder, order: number) {
    this.#budget = budget;
    this.#holder = holder;
    this.order = order;
  }

  /**
   * Takes a call slot; must precede the request to a platform. False when there are too many calls now. True again for a lease that has
   * begun.
   */
  begin(): boolean {
    if (this.#family === undefined && !this.#isReleased) {
      this.#family = this.#budget.takeCall(this.#holder, this);
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

  /** Counts the request's body, which is in memory until `release`; a repeated request replaces the first one. */
  countBody(body: Buffer | string | undefined): void {
    const bytes = body === undefined ? 0 : Buffer.byteLength(body);
    this.count(bytes - this.#body);
    this.#body = bytes;
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
