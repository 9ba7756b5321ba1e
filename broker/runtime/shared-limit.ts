/**
 * Limits of what all organisations together use of something that a process has a limited amount of: slots, or bytes. Beyond each limit there is a
 * reserve for organisations that use little, so that no organisation can stop the others, and one that is alone may use everything.
 */

/** `reserve`: beyond `all`, for an organisation that uses at most `little`. */
export type SharedLimit = { all: number; reserve: number; little: number };

/** Returns a limit whose reserve is enough for four organisations that use little. */
export const withReserve = (all: number): SharedLimit => ({ all, reserve: all / 4, little: all / 16 });

/** Who uses something: an agent with its children, by the id of the agent, or another client; and the id of its organisation, '' if none is known. */
export type Holder = { family: string; organisation: string };

/** What one organisation uses. */
export type Share = { readonly used: number };

/** What is in use, in total and by each organisation. */
export class SharedUse {
  readonly #limit: SharedLimit;
  #used = 0;
  /** Never removed: there are few organisations, and only the operator creates one. */
  readonly #shares = new Map<string, { used: number }>();

  constructor(limit: SharedLimit) {
    this.#limit = limit;
  }

  /** What all organisations use. */
  get used(): number {
    return this.#used;
  }

  /** Returns the share of an organisation, by its id. */
  of(organisation: string): Share {
    const share = this.#shares.get(organisation) ?? { used: 0 };
    this.#shares.set(organisation, share);
    return share;
  }

  /**
   * Whether an organisation may use `amount` more. `available`: the total that there is now. If that is less than limit and reserve together, all parts
   * of the limit are smaller in the same proportion.
   */
  hasRoom({ used }: Share, amount: number, available = Number.POSITIVE_INFINITY): boolean {
    const { all, reserve, little } = this.#limit;
    const part = Math.min(1, available / (all + reserve));
    const most = used + amount <= little * part ? all + reserve : all;
    return this.#used + amount <= most * part;
  }

  /** Counts use; a negative amount ends it. */
  count(share: Share, amount: number): void {
    (share as { used: number }).used += amount;
    this.#used += amount;
  }
}

/** What is in use, where further use waits until there is room. */
export class SharedRoom {
  readonly #use: SharedUse;
  #waiting: { share: Share; amount: number; begin: () => void }[] = [];

  constructor(limit: SharedLimit) {
    this.#use = new SharedUse(limit);
  }

  /** Waits until the organisation may use `amount`, which must be within the limit. Resolves to the function that ends the use, to be called once. */
  async take(organisation: string, amount: number): Promise<() => void> {
    const share = this.#use.of(organisation);
    if (this.#use.hasRoom(share, amount)) this.#use.count(share, amount);
    else await new Promise<void>((begin) => this.#waiting.push({ share, amount, begin }));
    return () => {
      this.#use.count(share, -amount);
      this.#beginWaiting();
    };
  }

  #beginWaiting(): void {
    this.#waiting = this.#waiting.filter(({ share, amount, begin }) => {
      if (!this.#use.hasRoom(share, amount)) return true;
      this.#use.count(share, amount);
      begin();
      return false;
    });
  }
}
