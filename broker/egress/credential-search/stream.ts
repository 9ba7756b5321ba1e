/** Searches for a credential in an answer that arrives in pieces. */
import type { Secret } from '../../crypto/secret.ts';
import { recentlyUsed } from '../../runtime/recently-used.ts';
import { rawSearch } from '../raw-search.ts';
import { type FindForms, formSearch, type Span } from './form-search.ts';
import { formsOf, rawForms } from './forms.ts';
import { type MadeOf, textsToFind } from './patterns.ts';

/** Replaces each byte of a credential in a text (`*`). */
const MASK = 0x2a;
const NOTHING = Buffer.alloc(0);

/** Which forms are searched for: `raw` in compressed data, where any other form could only be a coincidence. */
export type SearchForms = 'all' | 'raw';

/** The search for a credential that is too short. */
const findNothing: FindForms = ({ length }) => ({ spans: [], free: length });

const MIB = 1024 * 1024;
/**
 * Cache of prepared searches for all forms, per process. One takes some 3 KiB for each byte of its credential (measured: 149 KiB for 40
 * bytes, 2.6 MB for 1,000), and a millisecond to prepare; many connections are never streamed from.
 */
const searches = recentlyUsed<FindForms>(1_000, 24 * MIB);
const BYTES_PER_SECRET_BYTE = 3_800;
let made = 0;

/** A credential prepared for searches. Like `Secret` it cannot be printed or serialised. */
export class StreamedCredential {
  readonly #secrets: readonly string[];
  readonly #key = String(made++);
  readonly #raw: FindForms;

  constructor(secret: Secret, madeOf: MadeOf = {}) {
    this.#secrets = textsToFind(secret, madeOf);
    this.#raw = prepare(rawForms(this.#secrets), rawSearch);
  }

  /** Begins a search through one answer. `mask`: replace what is found; otherwise the answer must be broken off. */
  search(options: { mask: boolean; forms?: SearchForms }): CredentialSearch {
    return new CredentialSearch(options.forms === 'raw' ? this.#raw : this.#all(), options.mask);
  }

  #all(): FindForms {
    const known = searches.get(this.#key);
    if (known !== undefined) return known;
    const find = prepare(formsOf(this.#secrets), formSearch);
    searches.set(this.#key, find, BYTES_PER_SECRET_BYTE * this.#secrets.join('').length);
    return find;
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

const prepare = <F>(forms: readonly F[], search: (forms: readonly F[]) => FindForms): FindForms =>
  forms.length === 0 ? findNothing : search(forms);

/**
 * One search. Only bytes that may begin a form are held back, so that an event is never late. The result does not depend on how the answer
 * is split into pieces.
 */
export class CredentialSearch {
  readonly #find: FindForms;
  /** Whether matches are replaced. */
  readonly mask: boolean;
  /** The last received bytes, which may begin a form. */
  #held: Buffer = NOTHING;
  /** How many of them belong to a credential that began before them. */
  #heldMasked = 0;
  #found = false;

  /** Use `StreamedCredential.search`. */
  constructor(find: FindForms, mask: boolean) {
    this.#find = find;
    this.mask = mask;
  }

  /** Whether the credential was found. Without `mask` nothing more may be passed on then. */
  get found(): boolean {
    return this.#found;
  }

  /** Takes the next piece and returns what may be passed on, without copying if possible. The piece must not change later. */
  push(piece: Buffer): Buffer {
    return this.#pass(this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]), false);
  }

  /** Ends the answer and returns the bytes that were held back. */
  end(): Buffer {
    return this.#pass(this.#held, true);
  }

  #pass(bytes: Buffer, isEnd: boolean): Buffer {
    const { spans, free } = this.#find(bytes, isEnd);
    if (spans.length > 0) this.#found = true;
    return this.#release(bytes, free, spans);
  }

  #release(bytes: Buffer, free: number, spans: readonly Span[]): Buffer {
    if (this.#found && !this.mask) {
      this.#held = NOTHING;
      return NOTHING;
    }
    let out = bytes.subarray(0, free);
    let masked = this.#heldMasked;
    if (masked > 0 || spans.length > 0) {
      out = Buffer.from(out);
      out.fill(MASK, 0, Math.min(masked, free));
      for (const { from, to } of spans) {
        // A match that begins in the held-back bytes is found again with the next piece.
        if (from >= free) continue;
        out.fill(MASK, from, Math.min(to, free));
        masked = Math.max(masked, to);
      }
    }
    this.#heldMasked = Math.max(0, masked - free);
    this.#held = free === bytes.length ? NOTHING : Buffer.from(bytes.subarray(free));
    return out;
  }
}
