/** The search for a credential in an answer that comes in pieces (decisions, Streams and raw doors). */
import type { Secret } from '../crypto/secret.ts';
import { type Form, formsOf, rawForms } from './credential-forms.ts';
import { matchForm, startsBefore } from './form-match.ts';
import { FormWindows, MAX_UNSEEN } from './form-windows.ts';

/** What stands in the place of each byte of a credential in a text. */
const MASK = 0x2a;
const NOTHING = Buffer.alloc(0);

/** Which forms are looked for: `raw` in compressed data, where any other form would be there by chance only. */
export type SearchForms = 'all' | 'raw';

/** `byFirst`: the forms that may begin with a byte. */
type Prepared = { windows: FormWindows | undefined; byFirst: readonly (readonly Form[] | undefined)[] };

/** A credential prepared for searches. Like `Secret` it cannot be printed or serialised. */
export class StreamedCredential {
  readonly #secrets: readonly string[];
  readonly #prepared = new Map<SearchForms, Prepared>();

  /** `options.basic`: the credential is `user:password`, and the password alone is looked for as well. */
  constructor(secret: Secret, options: { basic?: boolean } = {}) {
    const whole = secret.reveal();
    const colon = options.basic ? whole.indexOf(':') : -1;
    this.#secrets = colon === -1 ? [whole] : [whole, whole.slice(colon + 1)];
  }

  /** Begins a search through one answer. `mask`: replace what is found; otherwise the answer is to be broken off. */
  search(options: { mask: boolean; forms?: SearchForms }): CredentialSearch {
    const which = options.forms ?? 'all';
    let prepared = this.#prepared.get(which);
    if (prepared === undefined) {
      prepared = prepare(which === 'all' ? formsOf(this.#secrets) : rawForms(this.#secrets));
      this.#prepared.set(which, prepared);
    }
    return new CredentialSearch(prepared, options.mask);
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

function prepare(forms: readonly Form[]): Prepared {
  const byFirst: Form[][] = [];
  for (const form of forms)
    for (const byte of new Set(form.characters[0]?.map((spelling) => spelling[0]))) {
      if (byte === undefined) continue;
      byFirst[byte] ??= [];
      byFirst[byte].push(form);
    }
  return { windows: forms.length === 0 ? undefined : new FormWindows(forms), byFirst: Array.from(byFirst) };
}

/**
 * One search. Only bytes that may begin a form are held back, so that an event is never late; whatever the pieces, the result
 * is that of the whole.
 */
export class CredentialSearch {
  readonly #prepared: Prepared;
  /** Whether what is found is replaced. */
  readonly mask: boolean;
  /** Bytes that may begin a form: the last ones that came. */
  #held: Buffer = NOTHING;
  /** So many of them belong to a credential that began before them. */
  #heldMasked = 0;
  #found = false;

  /** Use `StreamedCredential.search`. */
  constructor(prepared: Prepared, mask: boolean) {
    this.#prepared = prepared;
    this.mask = mask;
  }

  /** Whether the credential was found. Without `mask` nothing more may be passed on then. */
  get found(): boolean {
    return this.#found;
  }

  /** Takes the next piece and gives what may be passed on, without copying it when it can. The piece must not change later. */
  push(piece: Buffer): Buffer {
    if (this.#prepared.windows === undefined) return piece;
    return this.#pass(this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]), false);
  }

  /** The answer is over: what was held back goes on with no more. */
  end(): Buffer {
    return this.#pass(this.#held, true);
  }

  #pass(bytes: Buffer, isEnd: boolean): Buffer {
    const { windows, byFirst } = this.#prepared;
    const { length } = bytes;
    const spans: { from: number; to: number }[] = [];
    let free = length;
    const readFrom = (form: Form, start: number) => {
      const { end, partial } = matchForm(form, bytes, length, start);
      if (end !== -1) spans.push({ from: start, to: end });
      if (partial && !isEnd && start < free) free = start;
    };
    windows?.scan(bytes, (at, places) => {
      for (const { form, index, back } of places)
        if (at >= back) for (const start of startsBefore(form, bytes, index, at - back)) readFrom(form, start);
    });
    for (let at = Math.max(0, length - MAX_UNSEEN); at < length; at++)
      for (const form of byFirst[bytes[at] ?? 0] ?? []) readFrom(form, at);
    if (spans.length > 0) this.#found = true;
    return this.#release(bytes, free, spans);
  }

  #release(bytes: Buffer, free: number, spans: readonly { from: number; to: number }[]): Buffer {
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
        // One that begins behind what goes out is found again with the next piece.
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
