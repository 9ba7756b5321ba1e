/**
 * Calls without an answer, kept in a folder that only the agent's user can read: a process that is killed while it waits, or
 * while a call is on its way, leaves its successor what it needs to find that call again. One file a call, so that processes
 * that serve one agent side by side need no lock. Nothing of a call is in it but its hash and the reason that was given.
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

/** The broker keeps an Idempotency-Key for 24 hours. */
const LIFETIME_MS = 24 * 3600 * 1000;
/** A held call is found for as long as organisations let them wait. */
const HELD_LIFETIME_MS = 30 * LIFETIME_MS;

/** `turn`: when it was begun last, in milliseconds. */
type Kept = { repeat: Repeat; turn: number };

/** `folder` is made when it is first needed. Throws what the file system throws. */
export function repeatsOnDisk(folder: string, now: () => number = Date.now): Repeats {
  const pathOf = (hash: string) => join(folder, `${hash}.json`);

  /** `over`: there is a file, and it counts for nothing. */
  const look = (hash: string): Kept | 'over' | undefined => {
    try {
      const repeat = JSON.parse(readFileSync(pathOf(hash), 'utf8')) as Repeat;
      const turn = statSync(pathOf(hash)).mtimeMs;
      const lifetime = repeat.approvalId === undefined ? LIFETIME_MS : HELD_LIFETIME_MS;
      return typeof repeat.key === 'string' && turn > now() - lifetime ? { repeat, turn } : 'over';
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return undefined;
      // Its machine went down in the middle of writing it.
      if (error instanceof SyntaxError) return 'over';
      throw error;
    }
  };

  const find = (hash: string): Kept | undefined => {
    const kept = look(hash);
    return kept === 'over' ? undefined : kept;
  };

  /** Writes it beside, so that nobody ever reads half of it; `put` brings it to its place. */
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

  /** It lives as long again, and whoever began it before can see that. Where that fails it is found as it is. */
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
        const kept = look(hash);
        if (kept === 'over') rmSync(pathOf(hash), { force: true });
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

/** Puts the file there and answers its time, unless another process was faster: a link, unlike a renaming, replaces nothing. */
function putFirst(beside: string, path: string): number | undefined {
  const { mtimeMs } = statSync(beside);
  try {
    linkSync(beside, path);
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') return undefined;
    // A file system without links.
    renameSync(beside, path);
  }
  return mtimeMs;
}
