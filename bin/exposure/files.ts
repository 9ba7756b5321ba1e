/** Finds files in which tools keep credentials, and describes their content. */
import { closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { CREDENTIAL_FILES } from './credential-files.ts';
import type { Finding, Place } from './finding.ts';

const MAX_BYTES = 1024 * 1024;

/** Returns the beginning of a readable regular file; undefined for anything else. Never blocks, as opening a pipe could. */
function beginningOf(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return undefined;
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const bytes = Buffer.alloc(MAX_BYTES);
      return bytes.toString('utf8', 0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

/** Returns the files with credentials that the command could read, each once. */
export function findFiles(place: Place): Finding[] {
  const seen = new Set<string>();
  return CREDENTIAL_FILES.flatMap(({ paths, what, look, advice }) =>
    paths(place).flatMap((path): Finding[] => {
      if (seen.has(path)) return [];
      seen.add(path);
      const text = beginningOf(path);
      if (text === undefined || text.trim() === '') return [];
      const held = look === undefined ? '' : look(text);
      if (held === undefined) return [];
      return [{ kind: 'file', where: path, what: `${what} ${held}`.trim(), advice: `${advice}.` }];
    }),
  );
}
