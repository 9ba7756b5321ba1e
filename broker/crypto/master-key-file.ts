import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isPrivatePlace, type ProcessContext } from '../runtime/private-place.ts';
import { syncFolder } from '../runtime/sync-file.ts';
import { generateMasterKey, type MasterKey, MasterKeyError, type MasterKeys, parseMasterKey } from './master-key.ts';

/**
 * The source of the master key. `environment` is the value of `AGENT_BROKER_MASTER_KEY`, `previous` that of `AGENT_BROKER_MASTER_KEY_PREVIOUS` (former keys,
 * separated by commas, during a rotation); `file` is a path.
 */
export type MasterKeySource =
  | { readonly environment: string; readonly previous?: string | undefined }
  | { readonly file: string };

/** Enough for some eighty keys; a larger file is not a key file. */
const MAX_FILE_BYTES = 4096;
const POSIX = process.platform !== 'win32';

/**
 * Reads the master keys. A missing key file is created with a new key when `allowCreate` is true (which must be false as soon as the store has sealed rows);
 * a key in the environment is never created.
 * @returns the keys, and whether they were created just now (then the operator is told to keep a copy of the file)
 * @throws MasterKeyError
 */
export function readMasterKeys(
  source: MasterKeySource,
  options: { allowCreate: boolean },
): { keys: MasterKeys; created: boolean } {
  if ('environment' in source) {
    const previous = source.previous === undefined || source.previous === '' ? [] : source.previous.split(',');
    return { keys: parseAll([source.environment, ...previous], environmentName), created: false };
  }
  const found = readKeyFile(source.file);
  if (found !== undefined) return { keys: parseFile(found, source.file), created: false };
  if (!options.allowCreate) throw missing(source.file);
  const created = createKeyFile(source.file);
  // Read back, also when another process created the file concurrently: both processes then use the key on the disk.
  return { keys: parseFile(readKeyFile(source.file) ?? '', source.file), created };
}

/**
 * Returns a warning about unsafe permissions of the key file's folder; undefined when there is none, or no folder. Unsafe permissions of the file itself are
 * an error; write permission on the folder only allows removing the file, and container volumes are often world-writable, so that is a warning.
 */
export function keyFolderWarning(path: string, surroundings?: ProcessContext): string | undefined {
  const folder = dirname(path);
  if (!isPrivatePlace(path, surroundings))
    return `Other users of this machine may be able to read the key file: Windows keeps them out of your profile alone, and ${folder} is not in it. Set AGENT_BROKER_DATA to a folder of your profile.`;
  if (!POSIX) return undefined;
  try {
    const stat = lstatSync(folder);
    if (stat.isSymbolicLink())
      return `The folder of the key file, ${folder}, is a symbolic link. Name the folder itself.`;
    if ((stat.mode & 0o022) !== 0 && (stat.mode & 0o1000) === 0)
      return `Others may write into the folder of the key file, and so remove the key. Run: chmod 700 ${folder}`;
  } catch {
    // Opening the file reports the problem with its folder.
  }
  return undefined;
}

/**
 * Starts a rotation: puts a new key before those in the file. Every sealed value is then re-wrapped, and `dropPreviousKeys` ends the rotation. If the file
 * already has previous keys, a rotation was interrupted: resume that one instead of calling this again.
 * @throws MasterKeyError `busy` when another rotation holds the lock
 */
export function rotateKeyFile(path: string): MasterKeys {
  const { text, key } = generateMasterKey();
  return replaceKeyFile(path, (old) => ({
    lines: [text.reveal(), ...old.lines],
    keys: { current: key, previous: [old.keys.current, ...old.keys.previous] },
  }));
}

/**
 * Ends a rotation: leaves only the current key in the file. Call it when no sealed row has another key's id; rows that still do can never be opened again.
 * @throws MasterKeyError
 */
export function dropPreviousKeys(path: string): MasterKeys {
  return replaceKeyFile(path, (old) => ({
    lines: old.lines.slice(0, 1),
    keys: { current: old.keys.current, previous: [] },
  }));
}

/**
 * Removes the unfinished change of a killed process: its content was never in effect. Call it only when no other process can be changing the file.
 * @throws MasterKeyError
 */
export function removeUnfinishedChange(path: string): void {
  try {
    rmSync(`${path}.new`, { force: true });
  } catch (cause) {
    throw cannotWrite(path, cause);
  }
}

type Content = { lines: string[]; keys: MasterKeys };

/**
 * Replaces the key file. The new file is written next to the old one under a fixed name that is created exclusively (O_EXCL), which makes it the lock:
 * concurrent rotations cannot lose a key. The rename is atomic and releases the lock.
 */
function replaceKeyFile(path: string, change: (old: Content) => Content): MasterKeys {
  const next = `${path}.new`;
  let file: number;
  try {
    file = openSync(next, exclusive, 0o600);
  } catch (cause) {
    if (!isCode(cause, 'EEXIST')) throw cannotWrite(path, cause);
    throw new MasterKeyError(
      'busy',
      `${next} exists: another rotation is running, or one was interrupted. If none is running, delete that file (its key was never used) and try again.`,
    );
  }
  let keys: MasterKeys;
  try {
    const text = readKeyFile(path);
    if (text === undefined) throw missing(path);
    const changed = change({ lines: linesOf(text), keys: parseFile(text, path) });
    writeDurably(file, `${changed.lines.join('\n')}\n`);
    renameSync(next, path);
    keys = changed.keys;
  } catch (error) {
    rmSync(next, { force: true });
    throw error instanceof MasterKeyError ? error : cannotWrite(path, error);
  } finally {
    closeSync(file);
  }
  syncFolder(dirname(path));
  return keys;
}

/** Creates the key file atomically: written under a temporary name, then linked, which never replaces an existing file. */
function createKeyFile(path: string): boolean {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const file = openSync(draft, exclusive, 0o600);
    try {
      writeDurably(file, `${generateMasterKey().text.reveal()}\n`);
    } finally {
      closeSync(file);
    }
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw cannotWrite(path, error);
  } finally {
    rmSync(draft, { force: true });
    // The folder is missing when creating it failed, which is the error to report.
    if (existsSync(dirname(path))) syncFolder(dirname(path));
  }
}

/**
 * Returns the text of the file; undefined when it does not exist. Permissions are checked on the open descriptor, so that the file cannot be swapped
 * (TOCTOU).
 */
function readKeyFile(path: string): string | undefined {
  let file: number;
  try {
    // NONBLOCK: opening a named pipe must not wait for a writer.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    if (isCode(cause, 'ENOENT')) return undefined;
    if (isCode(cause, 'ELOOP')) throw unsafe(path, 'it is a symbolic link. Name the file itself');
    throw new MasterKeyError('unreadable', `The key file ${path} cannot be read (${codeOf(cause)}).`, { cause });
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw unsafe(path, 'it is not a regular file');
    // systemd and Kubernetes give one service access to root's secret by a group or an access control list, which shows as 0440.
    const isLent = stat.uid === 0 && process.geteuid?.() !== 0;
    if (POSIX && (stat.mode & (isLent ? 0o037 : 0o077)) !== 0) {
      throw unsafe(path, `its permissions let other users access it. Run: chmod 600 ${path}`);
    }
    if (POSIX && stat.uid !== 0 && stat.uid !== process.geteuid?.()) throw unsafe(path, 'it belongs to another user');
    if (stat.size > MAX_FILE_BYTES) throw new MasterKeyError('malformed', `${path} is too large for a key file.`);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

const exclusive = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);

const linesOf = (text: string): string[] => (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');

const parseFile = (text: string, path: string): MasterKeys =>
  parseAll(linesOf(text), (at) => `Line ${at + 1} of the key file ${path}`);

const environmentName = (at: number): string =>
  at === 0 ? 'AGENT_BROKER_MASTER_KEY' : `Key ${at} of AGENT_BROKER_MASTER_KEY_PREVIOUS`;

function parseAll(texts: readonly string[], nameAt: (at: number) => string): MasterKeys {
  const [current, ...previous] = texts.map((text, at) => parseMasterKey(text, nameAt(at))) as [MasterKey];
  return { current, previous };
}

function writeDurably(file: number, text: string): void {
  writeFileSync(file, text);
  fsyncSync(file);
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? 'unknown error';
const isCode = (error: unknown, code: string): boolean => codeOf(error) === code;

const unsafe = (path: string, reason: string) =>
  new MasterKeyError('unsafe_file', `The key file ${path} is refused: ${reason}.`);

const missing = (path: string) =>
  new MasterKeyError(
    'missing',
    `There is no master key: ${path} does not exist, and no new one is created while the store contains sealed values. Put the key file back, or set AGENT_BROKER_MASTER_KEY or AGENT_BROKER_KEY_FILE.`,
  );

const cannotWrite = (path: string, cause: unknown) =>
  new MasterKeyError(
    'unreadable',
    `The key file ${path} cannot be written (${codeOf(cause)}). Make its folder writable for this user, or choose another place with AGENT_BROKER_KEY_FILE.`,
    { cause },
  );
