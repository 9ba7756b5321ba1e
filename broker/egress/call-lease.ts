/** The share of one call in the budget of its agent's family and of the process (call-budget.ts). */
import type { Access, AccessEnded, LentCredential } from '../policy/access-ended.ts';
import type { Holder, Share } from '../runtime/shared-limit.ts';
import { withTimeout } from '../runtime/waits.ts';
import type { BudgetShare } from './budget-limits.ts';

/** How long a body waits for memory. */
const ROOM_MS = 10_000;

/** What an agent with its children uses. */
export type Family = BudgetShare & {
  readonly name: string;
  readonly organisation: { readonly calls: Share; readonly bytes: Share };
  readonly leases: CallLease[];
};

/** What a lease uses of its budget. */
export type LeaseBudget = {
  /** Adds a lease to its family. */
  join(holder: Holder, lease: CallLease): Family;
  /** Takes a call slot. `own`: bytes of the lease that are counted already. False when there are too many calls or bytes. */
  takeCall(family: Family, own: number): boolean;
  giveCallBack(family: Family): void;
  /** Adds bytes; negative to release them. */
  count(family: Family, bytes: number): void;
  /** Removes a lease and releases its `bytes`. */
  forget(family: Family, lease: CallLease, bytes: number): void;
  wait(lease: CallLease, resume: () => void): void;
  /**
   * Over the limit only the oldest lease continues, so that one always does; the limit is exceeded by two answers or bodies at most, the oldest and
   * the one that took the last room.
   */
  hasRoom(family: Family, lease: CallLease): boolean;
};

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
  readonly #budget: LeaseBudget;
  readonly #holder: Holder;
  /** Set from the first use until `release`. */
  #family: Family | undefined;
  #isCalling = false;
  #isEnded = false;
  #isReleased = false;
  #bytes = 0;
  #body = 0;
  #stopped: AccessEnded | undefined;
  #ends: (() => void)[] | undefined;

  /** Use `CallBudget.lease`. */
  constructor(budget: LeaseBudget, holder: Holder, order: number) {
    this.#budget = budget;
    this.#holder = holder;
    this.order = order;
  }

  /**
   * Takes a call slot; must precede the request to a platform. False when there are too many calls now. True again for a lease that has
   * begun.
   */
  begin(): boolean {
    if (!this.#isCalling && !this.#isEnded && !this.#isReleased) {
      this.#isCalling = this.#budget.takeCall(this.#join(), this.#bytes);
      this.since = performance.now();
      this.#leaveUnused();
    }
    return this.#isCalling;
  }

  #join(): Family {
    this.#family ??= this.#budget.join(this.#holder, this);
    return this.#family;
  }

  /** A lease that holds nothing must not be the oldest one, for which the others wait. */
  #leaveUnused(): void {
    if (this.#family === undefined || this.#isCalling || this.#isEnded || this.#bytes > 0) return;
    this.#budget.forget(this.#family, this, 0);
    this.#family = undefined;
  }

  /** Releases the call slot. The bytes of the answer stay counted until `release`. */
  endCall(): void {
    if (!this.#isCalling || this.#family === undefined) return;
    this.#isCalling = false;
    this.#isEnded = true;
    this.#budget.giveCallBack(this.#family);
  }

  /** Counts bytes of the call in memory; negative when they are freed. */
  count(bytes: number): void {
    if (this.#isReleased) return;
    const family = this.#join();
    this.#bytes += bytes;
    this.#budget.count(family, bytes);
  }

  /** Counts these bytes if there is room for them. */
  takeRoom(bytes: number): boolean {
    if (this.#isReleased) return false;
    this.#join();
    if (this.hasRoom) {
      this.count(bytes);
      return true;
    }
    this.#leaveUnused();
    return false;
  }

  /** Waits until there is room, and then counts these bytes, so that waiting requests hold none. Returns false on timeout. */
  async waitForRoom(bytes: number): Promise<boolean> {
    if (!this.#isReleased) this.#join();
    const until = performance.now() + ROOM_MS;
    while (!this.hasRoom) {
      const left = until - performance.now();
      if (left <= 0) {
        this.#leaveUnused();
        return false;
      }
      await withTimeout(new Promise<void>((resolve) => this.whenRoom(resolve)), left);
    }
    return this.takeRoom(bytes);
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
