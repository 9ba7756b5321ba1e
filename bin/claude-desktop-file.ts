/** Where Claude Desktop has its settings. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { appDataFolder, localAppDataFolder, type Machine } from './machine.ts';

const FILE = ['Claude', 'claude_desktop_config.json'];

/**
 * The file's path, in words. Installers for Windows since February 2026 make a package (MSIX) of it, named after its publisher's key: what a package
 * has below `%APPDATA%` is in a folder of its own, and of `%APPDATA%` itself it reads nothing (github.com/anthropics/claude-code/issues/26073).
 */
export function claudeDesktopFile(machine: Machine): readonly string[] {
  const folders = machine.platform === 'win32' ? packagesOf(machine) : [];
  // Of several, one that the program has begun to use.
  const used = folders.find((folder) => existsSync(join(...folder, ...FILE)));
  return [...(used ?? folders[0] ?? appDataFolder(machine)), ...FILE];
}

/** What each of its packages has in place of `%APPDATA%`. */
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
