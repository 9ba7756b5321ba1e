/**
 * A queue with round-robin between families: `next` takes from the family served longest ago, so that no family waits behind many items of
 * another.
 */
import { present } from '../runtime/present.ts';
import type { Holder } from '../runtime/shared-limit.ts';

export class FairQueue<T> {
  /** Waiting items by family, in the order of turns. No list is empty. */
  readonly #lists = new Map<string, T[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(family: string, item: T): void {
    const list = this.#lists.get(family);
    if (list === undefined) this.#lists.set(family, [item]);
    else list.push(item);
    this.#size++;
  }

  /** Takes the first item of the family whose turn it is; undefined when nothing waits. `isSkipped`: whether a family keeps its turn for later. */
  next(isSkipped: (family: string) => boolean = () => false): T | undefined {
    for (const [family, list] of this.#lists) {
      if (isSkipped(family)) continue;
      const item = present(list.shift(), 'item of a family');
      this.#size--;
      // The family moves to the end of the order.
      this.#lists.delete(family);
      if (list.length > 0) this.#lists.set(family, list);
      return item;
    }
    return undefined;
  }

  /** Removes the items for which this is true. */
  drop(isGone: (item: T) => boolean): void {
    for (const [family, list] of this.#lists) {
      const left = list.filter((item) => !isGone(item));
      this.#size -= list.length - left.length;
      if (left.length > 0) this.#lists.set(family, left);
      else this.#lists.delete(family);
    }
  }
}

/** A queue with turns between organisations, and within an organisation between its families. */
export class OrganisationsQueue<T> {
  /** The organisation of each waiting item. */
  readonly #turns = new FairQueue<string>();
  readonly #queues = new Map<string, FairQueue<T>>();

  push({ family, organisation }: Holder, item: T): void {
    const queue = this.#queues.get(organisation) ?? new FairQueue<T>();
    this.#queues.set(organisation, queue);
    queue.push(family, item);
    this.#turns.push(organisation, organisation);
  }

  /** Takes the item whose turn it is; undefined when nothing waits. `isSkipped`: whether an organisation keeps its turn for later. */
  next(isSkipped?: (organisation: string) => boolean): T | undefined {
    const organisation = this.#turns.next(isSkipped);
    if (organisation === undefined) return undefined;
    const queue = present(this.#queues.get(organisation), 'queue of an organisation');
    const item = queue.next();
    if (queue.size === 0) this.#queues.delete(organisation);
    return item;
  }
}
