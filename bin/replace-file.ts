/** Atomically replaces a file of another program, which may contain secrets. */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/** Limit of chained symbolic links, as in operating systems. */
const MAX_LINKS = 40;

/**
 * If `path` is a symbolic link, its target is replaced or created. Permissions, group and owner are preserved; only root can preserve another
 * owner: otherwise EPERM. When the user is not in the file's group, the group's permissions are dropped, because another group would get them.
 * A new file has mode 0600. The temporary file has an unpredictable name and mode 0600, and is always removed. Throws errors of the file system.
 */
export function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const target = targetOf(path);
  const beside = join(dirname(target), `.${basename(target)}.${randomUUID()}.part`);
  try {
    writeFileSync(beside, text, { mode: 0o600, flag: 'wx' });
    const old = statSync(target, { throwIfNoEntry: false });
    if (old) chmodSync(beside, giveTo(beside, old) ? old.mode & 0o777 : old.mode & 0o707);
    renameSync(beside, target);
  } finally {
    rmSync(beside, { force: true });
  }
}

/** Gives a new file the owner and the group of an old one. Returns false when the group could not be set, because the user is not in that group. */
function giveTo(path: string, old: Stats): boolean {
  const { uid, gid } = statSync(path);
  if (process.getuid === undefined || (old.uid === uid && old.gid === gid)) return true;
  try {
    chownSync(path, old.uid, old.gid);
    return true;
  } catch (error) {
    if (old.uid !== uid || (error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
    return false;
  }
}

/**
 * Checks whether `replaceFile` would succeed, without leaving a trace: only an empty file is created, and removed. `mode`: the mode of a
 * read-only file, which replacing would ignore; otherwise undefined. Throws errors of the file system where the file (as on a
 * read-only file system, for root too) or the folder cannot be written.
 */
export function tryReplacing(path: string): { mode: number | undefined } {
  let folder = dirname(path);
  if (existsSync(folder)) {
    const target = targetOf(path);
    const mode = statSync(target, { throwIfNoEntry: false })?.mode;
    // Checked by the mode bits, because root may write regardless of them.
    if (mode !== undefined && (mode & 0o222) === 0) return { mode: mode & 0o777 };
    if (mode !== undefined) accessSync(target, constants.W_OK);
    folder = dirname(target);
  }
  // Where a file can be created, a missing folder can be created, too.
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const probe = join(folder, `.${basename(path)}.${randomUUID()}.part`);
  try {
    writeFileSync(probe, '', { mode: 0o600, flag: 'wx' });
  } finally {
    rmSync(probe, { force: true });
  }
  return { mode: undefined };
}

/** The target of the chain of links, whether or not it exists. */
function targetOf(path: string): string {
  let at = path;
  for (let hop = 0; hop < MAX_LINKS; hop++) {
    const folder = realpathSync(dirname(at));
    const place = join(folder, basename(at));
    const next = linkAt(place);
    if (next === undefined) return place;
    at = resolve(folder, next);
  }
  throw Object.assign(new Error(`${path} is a loop of symbolic links.`), { code: 'ELOOP' });
}

/** The target of the link; undefined when it is not a link. */
function linkAt(place: string): string | undefined {
  try {
    return readlinkSync(place);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EINVAL' || code === 'ENOENT') return undefined;
    throw error;
  }
}
