/** The latest applies of governance files: the changes of each, and the file that restores what was in force before. */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import { findFileBefore, listGovernanceApplies } from '../store/governance-applies.ts';
import type { Db } from '../store/store.ts';
import { readStored } from '../store/stored-json.ts';
import { CHANGE_KINDS, type Change, rankOf } from './planning.ts';

/** Size limit of a file; a longer one could not be applied again. */
export const MAX_FILE_CHARACTERS = 8 * 1024 * 1024;
/** Most stored changes of one apply, and most lines and characters of each. */
const MAX_CHANGES = 200;
const MAX_LINES = 50;
const MAX_CHARACTERS = 1000;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Returns a file in its stored form; null when it is too long. */
export const keptFile = async (text: string): Promise<Uint8Array | null> =>
  text.length > MAX_FILE_CHARACTERS ? null : await compress(text);

/** Returns changes in their stored form; of too many, those that affect many agents come before those of single ones. */
export function keptChanges(changes: readonly Change[]): string {
  const some =
    changes.length <= MAX_CHANGES ? changes : changes.toSorted((a, b) => rankOf(a) - rankOf(b)).slice(0, MAX_CHANGES);
  const clipped = (line: string) =>
    line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS).toWellFormed()}…` : line;
  return JSON.stringify(
    some.map(({ action, kind, name, details }) => ({
      action,
      kind,
      name,
      details: details.slice(0, MAX_LINES).map(clipped),
    })),
  );
}

const Changes = z.array(
  z.object({
    action: z.enum(['create', 'update', 'delete']),
    kind: z.enum(CHANGE_KINDS),
    name: z.string(),
    details: z.array(z.string()),
  }),
);

/** Returns the stored applies, newest first. `changeCount`: the number of all changes, of which `changes` may be only the first. */
export async function listApplies(db: Db, organisationId: string) {
  return (await listGovernanceApplies(db, organisationId)).map(({ changes, has_file, change_count, ...apply }) => ({
    ...apply,
    changeCount: change_count,
    changes: readStored(Changes, changes, `changes of the apply ${apply.id}`),
    hasFile: has_file === 1,
  }));
}

/** Returns the file of what was in force before an apply; null when it was too long to be stored. Undefined: the apply is not stored. */
export async function readFileBefore(db: Db, organisationId: string, id: string): Promise<string | null | undefined> {
  const file = await findFileBefore(db, organisationId, id);
  return file ? (await decompress(file)).toString('utf8') : file;
}
