/** Finds the settings file of Claude Desktop. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { appDataFolder, localAppDataFolder, type Machine } from '../machine.ts';

const FILE = ['Claude', 'claude_desktop_config.json'];

/**
 * Returns the file's path, as a list of path segments. Windows installers since February 2026 make a package (MSIX), named after its publisher's key:
 * what a
 * package has below `%APPDATA%` is in a folder of its own, and it reads nothing of `%APPDATA%` itself (github.com/anthropics/claude-code/issues/26073).
 */
export function claudeDesktopFile(machine: Machine): readonly string[] {
  const folders = machine.platform === 'win32' ? packagesOf(machine) : [];
  // Of several packages, the one whose settings file exists.
  const used = folders.find((folder) => existsSync(join(...folder, ...FILE)));
  return [...(used ?? folders[0] ?? appDataFolder(machine)), ...FILE];
}

/** The folders that Claude Desktop's packages have in place of `%APPDATA%`. */
function packagesOf(machine: Machine): string[][] {
  const packages = [...localAppDataFolder(machine), 'Packages'];
  return namesIn(join(...packages))
    .filter((name) => name.startsWith('Claude_'))
    .map((name) => [...packages, name, 'LocalCache', 'Roaming']);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}
