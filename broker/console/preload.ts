/** Lets a browser fetch all modules of a page concurrently, instead of discovering them one import after the other. */

const SCRIPT = /<script type="module" src="([^"]+)">/;
/** Matches absolute and relative imports: modules that the command line uses too are imported relatively. */
const IMPORT = /\b(?:from|import)\s*["']((?:\/console|\.{1,2})\/[^"']+)["']/g;

/** Returns the page with a preload link for every module that its script imports, directly or indirectly. `modules`: text by path. */
export function withPreloads(page: string, modules: ReadonlyMap<string, string>): string {
  const [script, entry] = SCRIPT.exec(page) ?? [];
  if (script === undefined || entry === undefined) return page;
  const needed = new Set([entry]);
  for (const path of needed) {
    const text = modules.get(path);
    if (text === undefined) throw new Error(`The console imports ${path}, which is not there.`);
    for (const [, imported = ''] of text.matchAll(IMPORT)) needed.add(pathFrom(path, imported));
  }
  needed.delete(entry);
  const links = [...needed].map((path) => `<link rel="modulepreload" href="${path}">`);
  return page.replace(script, () => `${links.join('\n    ')}\n    ${script}`);
}

/** Resolves an import in the module at `path` to a path. */
const pathFrom = (path: string, imported: string): string => new URL(imported, `http://console${path}`).pathname;
