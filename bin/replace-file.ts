/** A file of somebody else's, replaced whole or not at all. Other programs' secrets may be in it. */
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readlinkSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/** More than any person has one behind the other; the systems give up at 40, too. */
const MOST_LINKS = 40;

/**
 * Where `path` is a link, the file that it leads to is replaced, or made. It keeps its rights; a new one is for its user only.
 * What is written beside it on the way has a name that nobody can foresee, is readable by nobody else, and is gone afterwards.
 * Throws what the file system throws.
 */
export function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const target = targetOf(path);
  const beside = join(dirname(target), `.${basename(target)}.${randomUUID()}.part`);
  try {
    writeFileSync(beside, text, { mode: 0o600, flag: 'wx' });
    const old = statSync(target, { throwIfNoEntry: false });
    if (old) chmodSync(beside, old.mode & 0o777);
    renameSync(beside, target);
  } finally {
    rmSync(beside, { force: true });
  }
}

/** The end of the links, whether or not there is something. */
function targetOf(path: string): string {
  let at = path;
  for (let hop = 0; hop < MOST_LINKS; hop++) {
    const folder = realpathSync(dirname(at));
    const place = join(folder, basename(at));
    const next = linkAt(place);
    if (next === undefined) return place;
    at = resolve(folder, next);
  }
  throw Object.assign(new Error(`${path} leads round in a circle.`), { code: 'ELOOP' });
}

/** Where the link at this place leads; undefined when there is none. */
function linkAt(place: string): string | undefined {
  try {
    return readlinkSync(place);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EINVAL' || code === 'ENOENT') return undefined;
    throw error;
  }
}
