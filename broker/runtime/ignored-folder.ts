/** Keeps the default data folder out of version control and packages. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** The name of the data folder in the working folder, where no other one is set. */
const DEFAULT_NAME = '.agent-broker';

const IGNORE_ALL = '# Private keys are kept here: git and npm leave this folder out.\n*\n';

/**
 * Creates a data folder of the default name with a `.gitignore`, which npm reads, too. It is usually in the folder of a project, where `git add .` and
 * `npm publish` would otherwise include the master key, the store, and the keys of agents. A folder of another name may hold more than the broker's data.
 * Does nothing where it may not write: the next step that writes there reports it.
 */
export function ignoreDefaultFolder(folder: string): void {
  if (basename(folder) !== DEFAULT_NAME) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, '.gitignore'), IGNORE_ALL, { mode: 0o600, flag: 'wx' });
  } catch {}
}
