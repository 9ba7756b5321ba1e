/**
 * Calls without an answer, kept in a folder that only the agent's user can read: a process that is killed while it waits, or
 * while a call is on its way, leaves its successor what it needs to find that call again. One file a call, so that processes
 * that serve one agent side by side need no lock. Nothing of a call is in it but its hash and the reason that was given.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newRepeat, type Repeat, type Repeats } from '../tools/repeats.ts';

/** The broker keeps an Idempotency-Key for 24 hours. */
const LIFETIME_MS = 24 * 3600 * 1000;
/** A held call is found for as long as organisations let them wait. */
const HELD_LIFETIME_MS = 30 * LIFETIME_MS;

/** `folder` is made when it is first needed. Throws what the file system throws. */
export function repeatsOnDisk(folder: string, now: () => number = Date.now): Repeats {
  const pathOf = (hash: string) => join(folder, `${hash}.json`);

  const read = (hash: string): Repeat | undefined => {
    try {
      const repeat = JSON.parse(readFileSync(pathOf(hash), 'utf8')) as Repeat;
      const lifetime = repeat.approvalId === undefined ? LIFETIME_MS : HELD_LIFETIME_MS;
      if (typeof repeat.key === 'string' && statSync(pathOf(hash)).mtimeMs > now() - lifetime) return repeat;
    } catch {
      // None, or one whose writer was killed in the middle: then nothing was sent yet.
    }
    return undefined;
  };

  const write = (hash: string, repeat: Repeat): void => {
    const beside = join(folder, `${hash}.${process.pid}.part`);
    writeFileSync(beside, JSON.stringify(repeat), { mode: 0o600 });
    renameSync(beside, pathOf(hash));
  };

  const end = (hash: string): void => rmSync(pathOf(hash), { force: true });

  return {
    begin: (hash, reason) => {
      const known = read(hash);
      if (known) return known;
      const repeat = newRepeat(reason);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      write(hash, repeat);
      return repeat;
    },
    find: read,
    held: (hash, approvalId) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      write(hash, { ...(read(hash) ?? newRepeat(undefined)), approvalId });
    },
    end,
    endApproval: (approvalId) => {
      let names: string[] = [];
      try {
        names = readdirSync(folder);
      } catch {}
      for (const [, hash = ''] of names.map((name) => /^(\w+)\.json$/.exec(name) ?? []))
        if (hash !== '' && read(hash)?.approvalId === approvalId) end(hash);
    },
  };
}
