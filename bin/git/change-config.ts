/**
 * Changes a file of git's configuration atomically. `git config` changes one value per run, so a process killed between two runs would leave rules
 * that lead to the broker before the credential helper for it is configured.
 */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Setting, settingsIn } from '../../mcp/git-config.ts';
import { CommandFailed } from '../failure.ts';
import { replaceFile } from '../replace-file.ts';
import { runGitConfig } from '../run/git.ts';
import { isSame } from './rewrites.ts';

/**
 * Removes values from a file, with sections that become empty, and appends others at its end. Git cannot write the file meanwhile.
 *
 * @param file need not exist if nothing is removed
 * @throws CommandFailed nothing was written
 */
export async function changeGitConfig(
  file: string,
  { removed, added }: { removed: readonly Setting[]; added: readonly Setting[] },
): Promise<void> {
  const lock = `${existsSync(file) ? realpathSync(file) : file}.lock`;
  takeLock(lock);
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), 'agent-broker-git-'));
    const copy = join(folder, 'config');
    // The copy does not get the file's mode: a copy of a read-only file could not be changed.
    if (existsSync(file)) writeFileSync(copy, readFileSync(file));
    const named = Map.groupBy(removed, ({ name }) => name);
    for (const [name, settings] of named)
      await runGitConfig(['--file', copy, '--unset-all', name, `^(${settings.map(literally).join('|')})$`]);
    const left = existsSync(copy) ? readFileSync(copy, 'utf8') : '';
    const text = left + (left === '' || left.endsWith('\n') ? '' : '\n') + written(added);
    writeFileSync(copy, text);
    const read = settingsIn(await runGitConfig(['--file', copy, '--null', '--list']));
    if (!added.every((one, i) => isSame(one, read.at(i - added.length) ?? { name: '', value: '' })))
      throw new CommandFailed(`Git could not read the new content of ${file}. The file was not changed.`);
    replaceFile(file, text);
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`${file} cannot be written: ${(error as Error).message}. It stays as it is.`);
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    rmSync(lock, { force: true });
  }
}

/** Creates the lock file that git itself uses, so that other processes of git and of this program stop. */
function takeLock(lock: string): void {
  try {
    writeFileSync(lock, '', { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new CommandFailed(
        `${lock} is there: another process changes this file. Try again when it has ended, or remove it if there is none. It stays as it is.`,
      );
    throw new CommandFailed(`${lock} cannot be written: ${(error as Error).message}. It stays as it is.`);
  }
}

/** Escapes a value for a POSIX regular expression. */
const literally = ({ value }: Setting): string => value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Formats settings for a file (git-config(1), Syntax): a section's header before consecutive values of that section. */
function written(settings: readonly Setting[]): string {
  let section: string | undefined;
  let text = '';
  for (const { name, value } of settings) {
    const [first, last] = [name.indexOf('.'), name.lastIndexOf('.')];
    const of = name.slice(0, last);
    if (of !== section) text += `[${name.slice(0, first)} "${quoted(name.slice(first + 1, last))}"]\n`;
    section = of;
    text += `\t${name.slice(last + 1)} = "${quoted(value)}"\n`;
  }
  return text;
}

const quoted = (text: string): string => text.replace(/[\\"]/g, '\\$&');
