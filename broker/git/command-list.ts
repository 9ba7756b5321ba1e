/**
 * Parses the beginning of a push: its commands and push options (gitprotocol-pack, "Reference Update Request and Packfile Transfer"). The
 * pack that follows is never read.
 */
import type { GitRef } from '../policy/facts.ts';
import { refNameProblem } from '../policy/refs/name.ts';
import { type PktLine, readPktLine } from './pkt-line.ts';

/** A push of more commands is one of a whole repository; each command is written into the audit row. */
const MAX_COMMANDS = 1_000;
const MAX_OPTIONS = 100;
/** Of commands and push options together. */
export const MAX_HEAD_BYTES = 256 * 1024;

/** `capabilities`: those that the client requested. `options`: for the code host's hooks (`git push -o`). */
export type Push = {
  refs: readonly GitRef[];
  hasPack: boolean;
  capabilities: readonly string[];
  options: readonly string[];
};

export type CommandListState =
  | { kind: 'more' }
  /** `bytes`: everything received so far; from `packAt` on it is the beginning of the pack. */
  | { kind: 'done'; push: Push; bytes: Buffer; packAt: number }
  | { kind: 'malformed'; why: string };

const MORE: CommandListState = { kind: 'more' };
const COMMAND = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (.+)$/s;
const SHALLOW = /^shallow (?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const ZERO = /^0+$/;
/** Readers differ on whether white space other than blanks separates fields. */
const CONTROL = /\p{Cc}/u;
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses a command list from pieces; memory is bounded by `MAX_HEAD_BYTES` and the longest piece. */
export class CommandListReader {
  #bytes = Buffer.alloc(0);
  #size = 0;
  #at = 0;
  #isOptions = false;
  readonly #options: string[] = [];
  #capabilities: readonly string[] | undefined;
  readonly #refs: GitRef[] = [];
  readonly #names = new Set<string>();
  #hasPack = false;

  /** Takes the next piece. Must not be called after `done` or `malformed`. */
  push(piece: Uint8Array): CommandListState {
    this.#append(piece);
    for (;;) {
      const read = readPktLine(this.#bytes.subarray(0, this.#size), this.#at);
      if (read.kind === 'malformed') return read;
      if (read.kind === 'incomplete') return MORE;
      this.#at = read.next;
      if (this.#at > MAX_HEAD_BYTES) return TOO_LONG;
      const why = this.#isOptions ? this.#readOption(read.line) : this.#readCommand(read.line);
      if (why !== undefined) return { kind: 'malformed', why };
      if (read.line.kind === 'flush' && !this.#startsOptions()) return this.#done();
    }
  }

  /** Called when the body has ended. */
  end(): CommandListState {
    return { kind: 'malformed', why: 'it ends inside of its list of commands' };
  }

  #append(piece: Uint8Array): void {
    if (this.#size + piece.length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(1024, 2 * this.#bytes.length, this.#size + piece.length));
      this.#bytes.copy(larger, 0, 0, this.#size);
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#size);
    this.#size += piece.length;
  }

  /** Options follow the flush after the commands if they were negotiated. */
  #startsOptions(): boolean {
    // Also matches the capability with a value, which no server needs and some ignore.
    if (this.#isOptions || !this.#capabilities?.some((one) => /^push-options(?:=|$)/.test(one))) return false;
    this.#isOptions = true;
    return true;
  }

  #done(): CommandListState {
    const push: Push = {
      refs: this.#refs,
      hasPack: this.#hasPack,
      capabilities: this.#capabilities ?? [],
      options: this.#options,
    };
    return { kind: 'done', push, bytes: this.#bytes.subarray(0, this.#size), packAt: this.#at };
  }

  #readOption(line: PktLine): string | undefined {
    if (line.kind === 'flush') return undefined;
    if (line.kind !== 'data') return 'there is a delimiter among the push options';
    if (this.#options.length === MAX_OPTIONS) return `it has more than ${MAX_OPTIONS} push options`;
    const text = textOf(withoutNewline(line.data));
    if (text === undefined || CONTROL.test(text)) return 'a push option is not a line of text';
    this.#options.push(text);
    return undefined;
  }

  #readCommand(line: PktLine): string | undefined {
    if (line.kind === 'flush') return undefined;
    if (line.kind !== 'data') return 'there is a delimiter among the commands';
    const { data } = line;
    const nul = data.indexOf(0);
    // The newline of a line comes after its capabilities.
    const text = textOf(nul === -1 ? withoutNewline(data) : data.subarray(0, nul));
    if (text === undefined) return 'a command is not in UTF-8';
    if (text === 'push-cert') return 'signed pushes are not supported; push without --signed';
    if (text.startsWith('shallow '))
      return SHALLOW.test(text) && nul === -1 && this.#refs.length === 0 ? undefined : 'a shallow line is malformed';
    if (nul !== -1) {
      if (this.#refs.length > 0) return 'there are capabilities after a command other than the first';
      const capabilities = textOf(withoutNewline(data.subarray(nul + 1)));
      if (capabilities === undefined || CONTROL.test(capabilities)) return 'its capabilities are malformed';
      this.#capabilities = capabilities.split(' ').filter((one) => one !== '');
    }
    return this.#add(text);
  }

  #add(text: string): string | undefined {
    const [, before = '', after = '', name = ''] = COMMAND.exec(text) ?? [];
    if (name === '') return 'a command is not of the form "old new ref"';
    if (before.length !== this.#digits() || after.length !== before.length)
      return 'an object id is not of the length of its object format';
    const problem = refNameProblem(name);
    if (problem !== undefined) return `the name of a ref ${problem}`;
    if (this.#names.has(name)) return 'it contains a ref twice';
    if (this.#refs.length === MAX_COMMANDS) return `it changes more than ${MAX_COMMANDS} refs; push fewer at a time`;
    const [creates, deletes] = [ZERO.test(before), ZERO.test(after)];
    if (creates && deletes) return 'a command neither creates nor deletes its ref';
    this.#names.add(name);
    this.#refs.push({ name, action: creates ? 'create' : deletes ? 'delete' : 'update' });
    if (!deletes) this.#hasPack = true;
    return undefined;
  }

  /** Length of an object id: SHA-1 unless the first command says otherwise (gitprotocol-capabilities, "object-format"). */
  #digits(): number {
    return this.#capabilities?.includes('object-format=sha256') ? 64 : 40;
  }
}

const TOO_LONG: CommandListState = {
  kind: 'malformed',
  why: `its list of commands is longer than ${MAX_HEAD_BYTES / 1024} KiB; push fewer refs at a time`,
};

const withoutNewline = (bytes: Buffer): Buffer => (bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes);

function textOf(bytes: Buffer): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}
