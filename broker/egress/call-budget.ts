/**
 * Limits of one agent family (an agent with its children), and of all families together, in this process, with a reserve for other organisations
 * (docs/agents.md, `too_many_calls`): concurrent calls to platforms, and bytes of their requests and answers in memory. Over the call limit a call is refused before the
 * platform is contacted; over the byte limit an answer in flight waits, with back-pressure on the platform. The leases are also the list
 * of calls in flight, which can be stopped.
 */
import { type Holder, SharedUse } from '../runtime/shared-limit.ts';
import { BUDGET, type BudgetLimits, type BudgetShare } from './budget-limits.ts';
import { CallLease, type Family, type LeaseBudget } from './call-lease.ts';

/** Above this number of families, idle ones are dropped from the map. */
const MAX_FAMILIES = 1_024;

/** The budget of a process. */
export class CallBudget implements LeaseBudget {
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

  /** Creates a lease of the family, which holds nothing yet. */
  lease(holder: Holder): CallLease {
    return new CallLease(this, holder, this.#leases++);
  }

  /** Returns the leases of calls that began before this moment (of `performance.now()`), can be stopped, and are not stopped yet. */
  underWay(before: number): CallLease[] {
    return [...this.#families.values()].flatMap(({ leases }) =>
      leases.filter(({ since, allowed, stopped }) => since < before && allowed !== undefined && stopped === undefined),
    );
  }

  join({ family: name, organisation }: Holder, lease: CallLease): Family {
    const family = this.#families.get(name) ?? {
      name,
      organisation: { calls: this.#calls.of(organisation), bytes: this.#bytes.of(organisation) },
      calls: 0,
      bytes: 0,
      leases: [],
    };
    this.#families.set(name, family);
    family.leases.push(lease);
    return family;
  }

  takeCall(family: Family, own: number): boolean {
    if (family.calls >= this.#family.calls || family.bytes - own >= this.#family.bytes) return false;
    if (!this.#calls.hasRoom(family.organisation.calls, 1)) return false;
    if (!this.#bytes.hasRoom(family.organisation.bytes, 1 - own)) return false;
    this.#countCalls(family, 1);
    return true;
  }

  #countCalls(family: Family, calls: number): void {
    family.calls += calls;
    this.#calls.count(family.organisation.calls, calls);
  }

  #countBytes(family: Family, bytes: number): void {
    family.bytes += bytes;
    this.#bytes.count(family.organisation.bytes, bytes);
  }

  giveCallBack(family: Family): void {
    this.#countCalls(family, -1);
  }

  count(family: Family, bytes: number): void {
    this.#countBytes(family, bytes);
    if (bytes < 0) this.#resumeWaiting();
  }

  forget(family: Family, lease: CallLease, bytes: number): void {
    this.#countBytes(family, -bytes);
    family.leases.splice(family.leases.indexOf(lease), 1);
    this.#waiting = this.#waiting.filter((waiting) => waiting.lease !== lease);
    if (family.leases.length === 0 && this.#families.size > MAX_FAMILIES) this.#families.delete(family.name);
    this.#resumeWaiting();
  }

  wait(lease: CallLease, resume: () => void): void {
    this.#waiting.push({ lease, resume });
  }

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
