/** Where Claude Desktop on Windows has its settings. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const FILE = ['Claude', 'claude_desktop_config.json'];

/**
 * The file's path, in words. Installers since February 2026 make a package (MSIX) of it, named after its publisher's key: what a package has below
 * `%APPDATA%` is in a folder of its own, and of `%APPDATA%` itself it reads nothing (github.com/anthropics/claude-code/issues/26073).
 *
 * @param local `%LOCALAPPDATA%`, in words
 * @param roaming `%APPDATA%`, where earlier installations read it
 */
export function claudeDesktopFile({ local, roaming }: Record<'local' | 'roaming', readonly string[]>): string[] {
  const packages = [...local, 'Packages'];
  const folders = namesIn(join(...packages))
    .filter((name) => name.startsWith('Claude_'))
    .map((name) => [...packages, name, 'LocalCache', 'Roaming']);
  // Of several, one that the program has begun to use.
  const used = folders.find((folder) => existsSync(join(...folder, ...FILE)));
  return [...(used ?? folders[0] ?? roaming), ...FILE];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}
