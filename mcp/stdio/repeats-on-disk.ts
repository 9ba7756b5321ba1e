/**
 * Pending calls, persisted in a folder that only the agent's user can read, so that the next process can continue them after a
 * kill. One file for each call, so that concurrent processes of one agent need no lock. A file contains only the call's hash
 * and its stated reason.
 */
import { randomUUID } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Begun, newRepeat, type Repeat, type Repeats } from '../tools/repeats.ts';

/** Lifetime of an Idempotency-Key at the broker. */
const LIFETIME_MS = 24 * 3600 * 1000;
/** Longest lifetime of a held call. */
const HELD_LIFETIME_MS = 30 * LIFETIME_MS;

/** `turn`: when the call was last begun, in milliseconds. */
type Kept = { repeat: Repeat; turn: number };

/** `folder` is created on demand. Throws errors of the file system. */
export function repeatsOnDisk(folder: string, now: () => number = Date.now): Repeats {
  const pathOf = (hash: string) => join(folder, `${hash}.json`);

  /** `expired`: there is a file, but it is invalid or expired. */
  const read = (hash: string): Kept | 'expired' | undefined => {
    try {
      const repeat = JSON.parse(readFileSync(pathOf(hash), 'utf8')) as Repeat;
      const turn = statSync(pathOf(hash)).mtimeMs;
      const lifetime = repeat.approvalId === undefined ? LIFETIME_MS : HELD_LIFETIME_MS;
      return typeof repeat.key === 'string' && turn > now() - lifetime ? { repeat, turn } : 'expired';
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return undefined;
      // Truncated by a crash of the machine.
      if (error instanceof SyntaxError) return 'expired';
      throw error;
    }
  };

  const find = (hash: string): Kept | undefined => {
    const kept = read(hash);
    return kept === 'expired' ? undefined : kept;
  };

  /** Writes to a temporary file, which `put` moves into place atomically. */
  const write = <T>(hash: string, repeat: Repeat, put: (beside: string, path: string) => T): T => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const beside = join(folder, `${hash}.${randomUUID()}.part`);
    writeFileSync(beside, JSON.stringify(repeat), { mode: 0o600 });
    try {
      return put(beside, pathOf(hash));
    } finally {
      rmSync(beside, { force: true });
    }
  };

  /** Extends the lifetime, visibly for the process that began the call before. If that fails, the entry stays as it is. */
  const renewed = (hash: string, { repeat, turn: before }: Kept): Begun => {
    const turn = Math.max(now(), Math.floor(before) + 1);
    try {
      utimesSync(pathOf(hash), new Date(turn), new Date(turn));
    } catch {}
    return { ...repeat, isNew: false, turn };
  };

  const endWhere = (hash: string, isIt: (kept: Kept) => boolean): void => {
    const kept = find(hash);
    if (kept && isIt(kept)) rmSync(pathOf(hash), { force: true });
  };

  return {
    begin: (hash, reason) => {
      for (;;) {
        const kept = read(hash);
        if (kept === 'expired') rmSync(pathOf(hash), { force: true });
        else if (kept) return renewed(hash, kept);
        const repeat = newRepeat(reason);
        const turn = write(hash, repeat, putFirst);
        if (turn !== undefined) return { ...repeat, isNew: true, turn };
      }
    },
    find: (hash) => find(hash)?.repeat,
    held: (hash, key, approvalId) => {
      const kept = find(hash);
      if (kept?.repeat.key === key) write(hash, { ...kept.repeat, approvalId }, renameSync);
    },
    end: (hash, key) => endWhere(hash, ({ repeat }) => repeat.key === key),
    endApproval: (approvalId) => {
      let names: string[] = [];
      try {
        names = readdirSync(folder);
      } catch {}
      for (const [, hash = ''] of names.map((name) => /^(\w+)\.json$/.exec(name) ?? []))
        if (hash !== '') endWhere(hash, ({ repeat }) => repeat.approvalId === approvalId);
    },
    drop: (hash, { key, turn }) => endWhere(hash, (kept) => kept.repeat.key === key && kept.turn === turn),
  };
}

/** Creates the file and returns its time, unless another process was first: link, unlike rename, does not replace. */
function putFirst(beside: string, path: string): number | undefined {
  const { mtimeMs } = statSync(beside);
  try {
    linkSync(beside, path);
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') return undefined;
    // The file system has no hard links.
    renameSync(beside, path);
  }
  return mtimeMs;
}
