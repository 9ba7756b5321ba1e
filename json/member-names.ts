/** The names of the objects that are open around a place in a JSON text: whether one comes twice, and which was last. */

/** Above this many names an object's names are looked up in a set. */
const FEW = 12;

export class MemberNames {
  /** Of all levels, the outermost first; as many as `#count` are in use. */
  readonly #names: string[] = [];
  #count = 0;
  /** By level, from 1: where its names begin, and the same as a set when they are many. */
  readonly #from: number[] = [0];
  readonly #sets: (Set<string> | undefined)[] = [undefined];

  /** An object or array begins that is at this level. */
  open(level: number): void {
    this.#from[level] = this.#count;
    this.#sets[level] = undefined;
  }

  /** It ends. */
  close(level: number): void {
    this.#count = this.#from[level] ?? 0;
  }

  /** Whether the object at this level, the innermost, has no such name yet; then it has it now. */
  add(level: number, name: string): boolean {
    const from = this.#from[level] ?? 0;
    const isNew = this.#count - from < FEW ? this.#isNew(from, name) : this.#isNewOfMany(level, from, name);
    this.#names[this.#count++] = name;
    return isNew;
  }

  /** The last name of the object at this level, when the innermost is at `depth`; empty when it has none yet. */
  last(level: number, depth: number): string {
    const end = level === depth ? this.#count : (this.#from[level + 1] ?? 0);
    return end > (this.#from[level] ?? 0) ? (this.#names[end - 1] ?? '') : '';
  }

  #isNew(from: number, name: string): boolean {
    for (let at = from; at < this.#count; at++) if (this.#names[at] === name) return false;
    return true;
  }

  #isNewOfMany(level: number, from: number, name: string): boolean {
    let set = this.#sets[level];
    if (set === undefined) {
      set = new Set(this.#names.slice(from, this.#count));
      this.#sets[level] = set;
    }
    if (set.has(name)) return false;
    set.add(name);
    return true;
  }
}
